//! Alerts and recording rules: one table, a rule file for each controller's
//! chart, and the page that lists them.
//!
//! An alert is here only if somebody has something to do about it, which its
//! runbook page says. What an alert costs to be wrong is judged by the tests
//! beside `kite-testkit`, which run the generated files.

mod everywhere;
mod own;
mod recordings;

use std::fmt::Write;

use anyhow::Result;
use kite_api::labels::Controller;
use serde_json::{Value, json};

use super::{File, MARK, yaml};

/// Where runbook pages are, as the files have it. The charts put the address of
/// a documentation site in its place when they are given one.
const RUNBOOKS: &str = "docs/runbooks";

/// How soon somebody has to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    /// Now: people cannot work, or something may be lost.
    Critical,
    /// Today: it does not mend itself, and nobody is locked out.
    Warning,
}

impl Severity {
    fn label(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
        }
    }
}

/// One alert. In all its texts `$controller` stands for the controller's name.
struct Alert {
    name: &'static str,
    severity: Severity,
    /// The charts that have it; none means all six.
    of: &'static [Controller],
    /// What has to be so, in PromQL.
    expr: &'static str,
    /// For how long it has to be so.
    hold: &'static str,
    /// One line for whoever is woken. The only text that may name what differs.
    summary: &'static str,
    /// What it means and where to begin.
    description: &'static str,
}

/// One recording rule. `$controller` as in [`Alert`].
struct Recording {
    name: &'static str,
    of: &'static [Controller],
    expr: &'static str,
}

fn has(of: &[Controller], controller: Controller) -> bool {
    of.is_empty() || of.contains(&controller)
}

fn alerts() -> impl Iterator<Item = &'static Alert> {
    everywhere::ALERTS.iter().chain(own::ALERTS)
}

/// A rule file for each chart, and the page.
pub(super) fn files() -> Result<Vec<File>> {
    let mut files = Controller::ALL
        .into_iter()
        .map(rules)
        .collect::<Result<Vec<_>>>()?;
    files.push(page());
    Ok(files)
}

/// The rules of one controller, in one group, so that an alert sees what was recorded just before.
fn rules(controller: Controller) -> Result<File> {
    let name = controller.name();
    let recordings = recordings::ALL
        .iter()
        .filter(|rule| has(rule.of, controller))
        .map(|rule| json!({ "record": rule.name, "expr": filled(rule.expr, name) }));
    let alerts = alerts()
        .filter(|alert| has(alert.of, controller))
        .map(|alert| rule(alert, name));
    let rules: Vec<Value> = recordings.chain(alerts).collect();
    let body = yaml(&json!({ "groups": [{ "name": name, "rules": rules }] }))?;
    Ok(File {
        path: format!("charts/{name}/files/rules.yaml"),
        text: format!("# {MARK} from xtask/src/generate/alerts. Change it there.\n{body}"),
    })
}

fn rule(alert: &Alert, controller: &str) -> Value {
    json!({
        "alert": alert.name,
        "expr": filled(alert.expr, controller),
        "for": alert.hold,
        "labels": {
            "controller": controller,
            "severity": alert.severity.label(),
        },
        "annotations": {
            "summary": filled(alert.summary, controller),
            "description": filled(alert.description, controller),
            "runbook_url": format!("{RUNBOOKS}/{}.md", alert.name),
        },
    })
}

/// A text of the table as one controller has it.
fn filled(text: &str, controller: &str) -> String {
    text.replace("$controller", controller)
}

const INTRODUCTION: &str = "\
# Alerts

What a chart brings with `metrics.prometheusRule.enabled: true`. Each controller's chart has the alerts of that
controller, so one that is installed alone has all of its own. Every alert has the labels `severity` and `controller`;
its page says what it means, what people feel, how to look, how to mend it, and when to leave it alone.

`critical` means now: people cannot work, or something may be lost. `warning` means today: it does not mend itself, and
nobody is locked out. Machines that run go on running whatever happens to Kite; no alert means that they have stopped,
unless it says so.

* A controller that was scaled to zero on purpose has no alert: without a process there is no series.
* An alert about one tenant's mistake would wake the wrong person, so users and machines that are not ready count only
  where they are many, or where an administrator alone can help.
* Kite has no certificates of its own and no webhook, so there is no alert about either.
* The rules look for scrape jobs that are called like the controller, with anything and a slash before it. ServiceMonitor
  and PodMonitor of the charts make such jobs; a scrape configuration of your own should too.
* `KiteDown`, `KiteNotScraped` and `KiteMemoryNearLimit` see more where kube-state-metrics is scraped as well, and are silent
  about that part where it is not.
* Links to the pages begin with the value `metrics.prometheusRule.runbookBaseUrl`, which is `docs/runbooks` unless it is
  set to where this documentation is served.
";

/// The page that lists all alerts.
fn page() -> File {
    let mut text = format!(
        "<!-- {MARK}. Change the table in xtask/src/generate/alerts. -->\n\n{INTRODUCTION}"
    );
    let every = section("Of every controller", |alert| alert.of.is_empty());
    text.push_str(&every);
    for controller in Controller::ALL {
        text.push_str(&section(controller.name(), |alert| {
            alert.of.contains(&controller)
        }));
    }
    text.push_str(RECORDED);
    for rule in recordings::ALL {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | `{}` |",
            rule.name,
            one_line(rule.expr).replace('|', "\\|")
        );
    }
    File {
        path: "docs/reference/alerts.md".to_owned(),
        text,
    }
}

const RECORDED: &str = "
## Recorded

What the alerts have in common, computed once. The names are for dashboards of your own too; the one that Kite brings
uses the metrics themselves, so that it is not empty where no rules are installed. `$controller` is the controller's name.

| Series | From |
|---|---|
";

fn section(title: &str, wanted: impl Fn(&Alert) -> bool) -> String {
    let lines: Vec<_> = alerts()
        .filter(|alert| wanted(alert))
        .map(|alert| {
            format!(
                "| [{name}](../runbooks/{name}.md) | {} | {} | {} |\n",
                alert.severity.label(),
                alert.hold,
                one_line(alert.description).replace("$controller", "the controller"),
                name = alert.name,
            )
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    let lines = lines.concat();
    format!(
        "\n## {title}\n\n| Alert | Severity | After | What it means |\n|---|---|---|---|\n{lines}"
    )
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::workspace::{self, root};

    #[test]
    fn every_alert_has_a_runbook_page_and_every_page_an_alert() {
        let pages: BTreeSet<_> = workspace::files(&root().join(RUNBOOKS), "md")
            .unwrap()
            .iter()
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .filter(|name| name != "README")
            .collect();
        let names: BTreeSet<_> = alerts().map(|alert| alert.name.to_owned()).collect();
        assert_eq!(pages, names);
    }

    #[test]
    fn a_runbook_page_answers_the_same_five_questions() {
        for alert in alerts() {
            let path = root().join(RUNBOOKS).join(format!("{}.md", alert.name));
            let text = workspace::read(&path).unwrap();
            assert!(text.starts_with(&format!("# {}\n", alert.name)), "{path:?}");
            let headings: Vec<_> = text.lines().filter(|l| l.starts_with("## ")).collect();
            assert_eq!(
                headings,
                [
                    "## What it means",
                    "## What people feel",
                    "## How to look",
                    "## How to mend it",
                    "## When to leave it alone",
                ],
                "{path:?}"
            );
            assert!(text.contains("kubectl "), "{path:?} has no command");
        }
    }

    #[test]
    fn no_name_stands_twice_and_every_text_ends_as_a_sentence_does() {
        let mut names = BTreeSet::new();
        for alert in alerts() {
            assert!(names.insert(alert.name), "{} twice", alert.name);
            assert!(alert.description.ends_with('.'), "{}", alert.name);
            assert!(!alert.summary.ends_with('.'), "{}", alert.name);
            // Only a summary names what differs, so that a description is the same text each time.
            assert!(!alert.description.contains("{{"), "{}", alert.name);
        }
    }

    // What a chart brings must not judge another controller's process.
    #[test]
    fn every_expression_names_its_own_controller() {
        for alert in alerts() {
            let named = alert.expr.matches("$controller").count();
            let selectors = alert.expr.matches('{').count();
            assert_eq!(named, selectors, "{}", alert.name);
        }
        for rule in recordings::ALL {
            assert!(
                rule.expr.contains("controller=\"$controller\""),
                "{}",
                rule.name
            );
        }
    }
}
