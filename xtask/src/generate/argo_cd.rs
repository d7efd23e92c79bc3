//! The health script for Argo CD, as the patch of Argo CD's settings that installs it.
//!
//! The script itself is written by hand; here it is only put where Argo CD
//! reads it, once for each kind.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::json;

use super::{File, MARK, yaml};
use crate::workspace::{read, root};

/// The script.
const SCRIPT: &str = "docs/gitops/health.lua";

/// The kinds that people put into a repository.
const KINDS: [&str; 3] = ["KitePlatform", "KiteUser", "KiteVirtualMachine"];

/// The patch of the ConfigMap `argocd-cm`.
pub(super) fn file() -> Result<File> {
    let script = read(&root().join(SCRIPT))?;
    let data: BTreeMap<_, _> = KINDS
        .iter()
        .map(|kind| {
            let key = format!("resource.customizations.health.{}_{kind}", kite_api::GROUP);
            (key, script.as_str())
        })
        .collect();
    let body = yaml(&json!({ "data": data }))?;
    Ok(File {
        path: "docs/gitops/argocd-cm.yaml".to_owned(),
        text: format!("# {MARK} from {SCRIPT}. Change it there.\n{body}"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_patch_gives_each_kind_the_script_byte_for_byte() {
        let patch: Value = serde_saphyr::from_str(&file().unwrap().text).unwrap();
        let script = read(&root().join(SCRIPT)).unwrap();
        for kind in KINDS {
            let key = format!("resource.customizations.health.kite.dev_{kind}");
            assert_eq!(patch["data"][&key], script.as_str(), "{kind}");
        }
    }
}
