//! The CRDs as chart templates: a `crds/` folder of a chart is never upgraded.
//!
//! The objects come from `kite_api::crds`; only what Helm needs is added here.

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::{File, template, yaml};

/// One file for each kind.
pub(super) fn files() -> Result<Vec<File>> {
    kite_api::crds::all().into_iter().map(file).collect()
}

fn file(mut crd: CustomResourceDefinition) -> Result<File> {
    // Removing the chart must not remove every machine with it.
    crd.metadata
        .annotations
        .get_or_insert_with(BTreeMap::new)
        .insert("helm.sh/resource-policy".to_owned(), "keep".to_owned());
    Ok(File {
        path: format!("charts/kite-crds/templates/{}.yaml", crd.spec.names.plural),
        text: template("crates/kite-api", ".Values.crds.enabled", &yaml(&crd)?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a reader has who does not know Helm.
    fn plain(text: &str) -> String {
        text.lines()
            .filter(|line| !line.starts_with("{{"))
            .fold(String::new(), |all, line| all + line + "\n")
    }

    #[test]
    fn without_its_directives_a_template_is_the_very_object() {
        for (file, crd) in files().unwrap().iter().zip(kite_api::crds::all()) {
            let read: CustomResourceDefinition =
                serde_saphyr::from_str(&plain(&file.text)).unwrap();
            assert_eq!(read.spec, crd.spec, "{}", file.path);
        }
    }

    #[test]
    fn every_crd_outlives_the_chart() {
        for file in files().unwrap() {
            assert!(file.text.contains("helm.sh/resource-policy: keep"));
        }
    }
}
