//! The CRDs as chart templates: a `crds/` folder of a chart is never upgraded.
//!
//! The objects come from `kite_api::crds`; only what Helm needs is added here.

use anyhow::{Result, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::{File, template, yaml};

/// One file for each kind.
pub(super) fn files() -> Result<Vec<File>> {
    kite_api::crds::all().iter().map(file).collect()
}

/// What Helm puts between `metadata:` and the name. Each directive has its line
/// to itself, as [`template`] says.
const METADATA: &str = "\
metadata:
  annotations:
{{- if .Values.crds.keep }}
    helm.sh/resource-policy: keep
{{- end }}
{{- with .Values.crds.annotations }}
{{- toYaml . | nindent 4 }}
{{- end }}
  labels:
    app.kubernetes.io/part-of: kite
{{- with .Values.crds.labels }}
{{- toYaml . | nindent 4 }}
{{- end }}
";

fn file(crd: &CustomResourceDefinition) -> Result<File> {
    let plural = &crd.spec.names.plural;
    let text = template("crates/kite-api", ".Values.crds.enabled", &yaml(crd)?)?;
    if text.matches("\nmetadata:\n  name:").count() != 1 {
        bail!("the CRD of {plural} has other metadata than its name");
    }
    Ok(File {
        path: format!("charts/kite-crds/templates/{plural}.yaml"),
        text: text.replacen("metadata:\n", METADATA, 1),
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
            assert!(plain(&file.text).contains("    helm.sh/resource-policy: keep\n"));
        }
    }
}
