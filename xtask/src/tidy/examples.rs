//! The examples of the book are read by the types and lose no field on the way.
//!
//! Whether the API server takes them is shown by the scenarios, which apply them.

use std::fmt::Debug;

use anyhow::{Context, Result};
use kite_api::{KitePlatform, KiteUser, KiteVirtualMachine};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Problem;
use crate::workspace;

/// All problems of all files in `docs/examples`.
pub(super) fn run() -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    for path in workspace::files(&workspace::root().join("docs/examples"), "yaml")? {
        if let Err(error) = check(&workspace::read(&path)?) {
            problems.push(Problem::new(
                &workspace::shown(&path),
                1,
                format!("{error:#}"),
            ));
        }
    }
    Ok(problems)
}

fn check(text: &str) -> Result<()> {
    let written: Value = serde_saphyr::from_str(text).context("the example is not YAML")?;
    match written["kind"].as_str() {
        Some("KitePlatform") => compare::<KitePlatform>(&written),
        Some("KiteUser") => compare::<KiteUser>(&written),
        Some("KiteVirtualMachine") => compare::<KiteVirtualMachine>(&written),
        other => anyhow::bail!("the example's kind {other:?} is not one that people write"),
    }
}

fn compare<K: DeserializeOwned + Serialize + Debug>(written: &Value) -> Result<()> {
    let object: K = serde_json::from_value(written.clone())
        .context("the example is not an object of its kind; follow docs/reference/fields.md")?;
    let understood = serde_json::to_value(&object)?;
    let lost = lost_field("", written, &understood);
    lost.map_or(Ok(()), |field| {
        anyhow::bail!("the field {field} does not exist; see docs/reference/fields.md")
    })
}

/// The first field that is written and was not understood.
fn lost_field(path: &str, written: &Value, understood: &Value) -> Option<String> {
    let fields = written.as_object()?;
    fields.iter().find_map(|(name, value)| {
        let path = format!("{path}.{name}");
        match understood.get(name) {
            Some(other) => lost_field(&path, value, other),
            None => Some(path),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: kite.dev/v1alpha1\nkind: KiteUser\nmetadata: {name: a}\n";

    #[test]
    fn every_example_is_understood_completely() {
        assert_eq!(run().unwrap(), []);
    }

    #[test]
    fn a_field_that_does_not_exist_is_found() {
        let good = format!("{HEAD}spec: {{namespace: a, quota: {{cpu: 1}}}}\n");
        assert!(check(&good).is_ok());
        let bad = format!("{HEAD}spec: {{namespace: a, quota: {{cpus: 1}}}}\n");
        let error = check(&bad).unwrap_err().to_string();
        assert!(error.contains(".spec.quota.cpus"), "{error}");
    }
}
