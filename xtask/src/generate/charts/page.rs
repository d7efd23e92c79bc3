//! The README of each chart, with the table of its values.
//!
//! The words above the table of a chart that is written by hand stand in its
//! `about.md`; those of the six are the same but for the name.

use std::fmt::Write;

use anyhow::Result;
use serde_json::Value;

use super::super::MARK;
use super::values::Entry;
use super::{BY_HAND, Chart};
use crate::workspace::{read, root};

/// The page of a controller's chart.
pub(super) fn of_controller(chart: &Chart) -> String {
    let words = include_str!("controller.md").replace("NAME", &chart.name);
    page(chart, &words, &table(&chart.entries, ""))
}

/// The page of a chart that is written by hand; the umbrella's shows the values of its parts too.
pub(super) fn by_hand(chart: &Chart, thin: &[Chart]) -> Result<String> {
    let words = read(&root().join("charts").join(&chart.name).join("about.md"))?;
    let mut tables = table(&chart.entries, "");
    for part in &chart.about.dependencies {
        if BY_HAND.contains(&part.name.as_str()) {
            let inner = Chart::by_hand(&part.name)?;
            tables += &section(part.key(), &inner);
        }
        if let Some(inner) = thin.iter().find(|inner| inner.name == part.name) {
            tables += &section(part.key(), inner);
        }
    }
    Ok(page(chart, &words, &tables))
}

fn page(chart: &Chart, words: &str, tables: &str) -> String {
    format!(
        "<!-- {MARK} from values.yaml and the words beside it. Change them there. -->\n\n# {}\n\n{}.\n\n{}\n\n## Values\n\n{tables}",
        chart.name,
        chart.about.description.trim_end_matches('.'),
        words.trim_end()
    )
}

fn section(key: &str, chart: &Chart) -> String {
    let own: Vec<Entry> = chart
        .entries
        .iter()
        .filter(|e| e.path[0] != "global")
        .cloned()
        .collect();
    format!(
        "\n### {key}: [{name}](../{name})\n\n{}",
        table(&own, &format!("{key}.")),
        name = chart.name
    )
}

fn table(entries: &[Entry], above: &str) -> String {
    let mut text = "| Value | Type | Default | What it does |\n|---|---|---|---|\n".to_owned();
    for entry in entries {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| `{above}{}` | {} | {} | {} |",
            entry.place(),
            entry.kind,
            default(&entry.default),
            entry.text.replace('|', "\\|")
        );
    }
    text
}

fn default(value: &Value) -> String {
    format!("`{value}`").replace('|', "\\|")
}
