//! Stories: what Prometheus sees in the course of something that happens, and
//! whether an alert is to fire at which minute of it.
//!
//! One file for each alert, named like it. In all texts `$controller` stands for
//! the controller's name, and `$kite` in a series for what the controller and
//! the scrape put on every series. Judging is promtool's.

use std::collections::BTreeMap;

use kite_api::labels::Controller;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Rule, project};

/// Between two scrapes, and between two looks at the rules.
pub(super) const STEP: &str = "1m";

/// The namespace that the stories' controllers run in.
const NAMESPACE: &str = "kite-system";

const FOLDER: &str = "crates/kite-testkit/tests/alerts/stories";

/// Something that happens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Story {
    /// In a few words.
    #[serde(rename = "story")]
    told: String,
    /// Series with their values, minute by minute, as promtool writes them.
    series: BTreeMap<String, String>,
    then: Vec<Moment>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Moment {
    /// Since the beginning.
    at: String,
    /// What fires then; nothing if left out.
    #[serde(default)]
    fires: Vec<Firing>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Firing {
    /// Those that the rule itself does not set.
    labels: BTreeMap<String, String>,
    /// What the person who is woken reads.
    summary: String,
}

/// The alerts that have stories, sorted.
pub(super) fn all() -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(project(FOLDER))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|file| file.trim_end_matches(".yaml").to_owned())
        .collect();
    names.sort();
    names
}

/// The stories of one alert.
pub(super) fn of(alert: &str) -> Vec<Story> {
    let text = super::text(&format!("{FOLDER}/{alert}.yaml"));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{alert}: {error}"))
}

impl Story {
    /// Whether the alert comes and goes in it.
    pub(super) fn fires_and_ends(&self) -> bool {
        let fires: Vec<_> = self.then.iter().map(|m| !m.fires.is_empty()).collect();
        matches!(fires[..], [false, .., false]) && fires.contains(&true)
    }

    /// Whether it never fires in it.
    pub(super) fn is_silent(&self) -> bool {
        self.then.iter().all(|moment| moment.fires.is_empty())
    }

    /// The story as a test of promtool's, of one controller's rule.
    pub(super) fn test(&self, controller: Controller, rule: &Rule) -> Value {
        let name = controller.name();
        let kite = format!("controller=\"{name}\", namespace=\"{NAMESPACE}\"");
        let filled = |text: &str| text.replace("$kite", &kite).replace("$controller", name);
        let series: Vec<_> = self
            .series
            .iter()
            .map(|(series, values)| json!({ "series": filled(series), "values": values }))
            .collect();
        let moments: Vec<_> = self
            .then
            .iter()
            .map(|moment| {
                let firing = moment.fires.iter().map(|f| f.expected(rule, &filled));
                json!({
                    "eval_time": moment.at,
                    "alertname": rule.alert,
                    "exp_alerts": firing.collect::<Vec<_>>(),
                })
            })
            .collect();
        json!({
            "name": format!("{name}: {}", self.told),
            "interval": STEP,
            "input_series": series,
            "alert_rule_test": moments,
        })
    }
}

impl Firing {
    fn expected(&self, rule: &Rule, filled: &impl Fn(&str) -> String) -> Value {
        let mut labels = rule.labels.clone();
        labels.extend(self.labels.clone());
        let mut annotations = rule.annotations.clone();
        annotations.insert("summary".to_owned(), filled(&self.summary));
        json!({ "exp_labels": labels, "exp_annotations": annotations })
    }
}
