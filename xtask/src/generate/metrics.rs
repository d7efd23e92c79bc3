//! The reference page of metrics, and the words that may become labels of one.
//!
//! The tables are those by which the processes register their metrics; the words
//! are the reasons that the page of messages has. Nothing is described here.

use std::fmt::Write;

use kite_runtime::metrics::{Metric, TABLE};

use super::{File, MARK, messages};

const INTRODUCTION: &str = "\
# Metrics

Each controller serves its own metrics under `/metrics`. Every series has the label `controller` beside those named
here. No label holds the name of a tenant's namespace or object, so the number of series does not grow with users or
machines; it is bounded by the kinds, conditions and reasons that there are. Serving metrics sends nothing to the API
server, unless `--metrics-auth` asks for tokens; then it is two requests a minute for each token.

The names that begin with `controller_runtime_`, `leader_election_`, `rest_client_` and `process_` are those that
dashboards for other controllers use, and mean the same here.
";

const LEADING: &str = "
Only the replica that leads has `kite_objects`, `kite_object_conditions`, `kite_watch_up` and the other metrics of
watches, and what a single controller has of its own: so a sum over all replicas counts each object once. A series of
`kite_object_conditions` exists while its number is not zero. The reasons are those of [Messages](messages.md).
";

/// The page and the list of words.
pub(super) fn files() -> Vec<File> {
    vec![page(), reasons()]
}

fn page() -> File {
    let mut text = format!("<!-- {MARK}. Change the tables in code. -->\n\n{INTRODUCTION}");
    section(&mut text, "Every controller", TABLE);
    text.push_str(LEADING);
    section(&mut text, "kite-namespace", kite_namespace::METRICS);
    section(&mut text, "kite-vm", kite_vm::METRICS);
    File {
        path: "docs/reference/metrics.md".to_owned(),
        text,
    }
}

fn section(text: &mut String, name: &str, metrics: &[Metric]) {
    let table: String = metrics.iter().map(line).collect();
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "\n## {name}\n\n| Metric | Kind | Labels | Meaning |\n|---|---|---|---|\n{table}"
    );
}

fn line(metric: &Metric) -> String {
    let labels: Vec<_> = metric.labels.iter().map(|l| format!("`{l}`")).collect();
    let (name, kind, labels) = (metric.name, metric.kind.word(), labels.join(", "));
    let help = metric.help.replace("<error>", "`<error>`");
    format!("| `{name}` | {kind} | {labels} | {help} |\n")
}

/// What a process may take for a label of `kite_object_conditions`.
fn reasons() -> File {
    let words = messages::words();
    let words: Vec<_> = words.iter().map(|w| format!("    \"{w}\",\n")).collect();
    let words = words.concat();
    File {
        path: "crates/kite-runtime/src/metrics/reasons.rs".to_owned(),
        text: format!(
            "//! {MARK} from the reasons of docs/reference/messages.md: the words that may become a label.\n\n\
             /// Every word of Kite's own that is a reason, sorted.\n\
             pub(super) const REASONS: &[&str] = &[\n{words}];\n"
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_metric_has_its_line_and_no_name_is_given_twice() {
        let all = [TABLE, kite_namespace::METRICS, kite_vm::METRICS].concat();
        let names: BTreeSet<_> = all.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), all.len());
        let page = page().text;
        let lines = page.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(lines, all.len());
    }

    #[test]
    fn the_words_are_the_reasons_that_the_controllers_give() {
        let reasons = reasons().text;
        for word in ["DiskLost", "Running", "SharedNamespace"] {
            assert!(reasons.contains(&format!("    \"{word}\",\n")), "{word}");
        }
    }
}
