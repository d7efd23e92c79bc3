//! The alerts that the charts bring, judged by promtool: each fires when it must,
//! stops when it is over, and is silent when nothing is wrong. And the dashboard,
//! whose queries the same judge has to understand.
//!
//! What series a life causes is written by hand, as stories, one file for each
//! alert. Whether the processes really have such series is not tested here.

mod stories;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kite_api::labels::Controller;
use kite_testkit::command_line::{self, Output};
use kite_testkit::programs::{self, Program};
use kite_testkit::queries::{OF_OTHERS, metrics_in};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;

use stories::Story;

/// A rule as a chart has it.
#[derive(Debug, Deserialize)]
struct Rule {
    alert: Option<String>,
    record: Option<String>,
    expr: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Group {
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rules {
    groups: Vec<Group>,
}

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

fn text(path: &str) -> String {
    std::fs::read_to_string(project(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn rules_file(controller: Controller) -> String {
    format!("charts/{}/files/rules.yaml", controller.name())
}

fn rules(controller: Controller) -> Vec<Rule> {
    let read: Rules = serde_saphyr::from_str(&text(&rules_file(controller))).unwrap();
    read.groups.into_iter().flat_map(|g| g.rules).collect()
}

/// Every alert's name, with the controllers whose charts have it.
fn alerts() -> BTreeMap<String, Vec<Controller>> {
    let mut alerts = BTreeMap::<String, Vec<Controller>>::new();
    for controller in Controller::ALL {
        for name in rules(controller).into_iter().filter_map(|rule| rule.alert) {
            alerts.entry(name).or_default().push(controller);
        }
    }
    alerts
}

/// Every query of the dashboard, as Prometheus would get it.
fn queries() -> Vec<String> {
    let dashboard: Value =
        serde_json::from_str(&text("charts/kite/files/dashboards/kite.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten()
        .map(|target| target["expr"].as_str().unwrap())
        .map(|expr| expr.replace("$__rate_interval", "5m"))
        .collect()
}

async fn promtool(args: &[&str]) -> Output {
    let program = programs::find_all(&[Program::Promtool]).await.unwrap();
    let mut command = Command::new(&program[0]);
    command.args(args);
    command_line::run(command, "").await.unwrap()
}

fn assert_content(output: &Output) {
    assert!(output.success, "{}\n{}", output.stdout, output.stderr);
}

#[tokio::test]
async fn promtool_takes_the_rules_of_every_chart() {
    let files = Controller::ALL.map(|c| project(&rules_file(c)));
    let mut args = vec!["check", "rules", "--lint=all", "--lint-fatal"];
    args.extend(files.iter().map(|file| file.to_str().unwrap()));
    assert_content(&promtool(&args).await);
}

#[tokio::test]
async fn every_alert_fires_when_it_must_ends_and_is_silent_when_nothing_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let mut tests = BTreeMap::<&str, Vec<Value>>::new();
    for (number, (name, of)) in alerts().into_iter().enumerate() {
        // All charts have the same text but for the controller's name, so one tells for all.
        let controllers = if of.len() == Controller::ALL.len() {
            vec![of[number % of.len()]]
        } else {
            of
        };
        let stories = stories::of(&name);
        assert_told_in_full(&name, &stories);
        for controller in controllers {
            let rule = rules(controller)
                .into_iter()
                .find(|rule| rule.alert.as_ref() == Some(&name))
                .unwrap();
            let told = stories.iter().map(|story| story.test(controller, &rule));
            tests.entry(controller.name()).or_default().extend(told);
        }
    }
    let mut args = vec!["test".to_owned(), "rules".to_owned()];
    for (controller, tests) in tests {
        let file = folder.path().join(format!("{controller}.yaml"));
        let rules = project(&format!("charts/{controller}/files/rules.yaml"));
        let document = json!({
            "rule_files": [rules],
            "evaluation_interval": stories::STEP,
            "tests": tests,
        });
        std::fs::write(&file, document.to_string()).unwrap();
        args.push(file.to_str().unwrap().to_owned());
    }
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    assert_content(&promtool(&args).await);
}

/// An alert whose end or whose silence nobody has tried may never end, or always fire.
fn assert_told_in_full(name: &str, stories: &[Story]) {
    assert!(
        stories.iter().any(Story::fires_and_ends),
        "no story of {name} begins silent, fires and ends"
    );
    assert!(
        stories.iter().any(Story::is_silent),
        "no story of {name} is silent throughout"
    );
}

#[test]
fn every_alert_has_its_stories_and_nothing_else_has() {
    let named: Vec<_> = alerts().into_keys().collect();
    assert_eq!(stories::all(), named);
}

#[tokio::test]
async fn promtool_understands_every_query_of_the_dashboard() {
    let rules: Vec<_> = queries()
        .iter()
        .enumerate()
        .map(|(number, expr)| json!({ "record": format!("panel:{number}"), "expr": expr }))
        .collect();
    assert!(rules.len() > 30, "only {} queries", rules.len());
    let document = json!({ "groups": [{ "name": "dashboard", "rules": rules }] });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dashboard.yaml");
    std::fs::write(&file, document.to_string()).unwrap();
    let args = ["check", "rules", file.to_str().unwrap()];
    assert_content(&promtool(&args).await);
}

#[test]
fn every_metric_that_is_asked_for_is_on_the_page_of_metrics() {
    let page = text("docs/reference/metrics.md");
    let rules: Vec<_> = Controller::ALL.into_iter().flat_map(rules).collect();
    let recorded: Vec<_> = rules.iter().filter_map(|r| r.record.as_deref()).collect();
    let asked = rules
        .iter()
        .map(|rule| rule.expr.clone())
        .chain(queries())
        .flat_map(|expr| metrics_in(&expr))
        .collect::<std::collections::BTreeSet<_>>();
    assert!(asked.len() > 25, "only {asked:?}");
    for name in asked {
        let family = name.strip_suffix("_bucket").unwrap_or(&name);
        let known = page.contains(&format!("| `{family}` |"))
            || recorded.contains(&name.as_str())
            || OF_OTHERS.contains(&name.as_str());
        assert!(known, "nobody makes {name}");
    }
}
