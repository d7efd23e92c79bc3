//! cdi-controller's pass over a DataSource: whether its source is there.

use kube::ResourceExt;
use serde_json::json;

use crate::stand_ins::cache::Key;
use crate::stand_ins::names::{CDI_MANAGER, Res};
use crate::stand_ins::value::{list, merge_patch, new_condition, put_condition, status, text};
use crate::stand_ins::world::{Pass, World, going};

/// One pass.
pub(in crate::stand_ins) async fn pass(world: &World, key: &Key) -> Pass {
    let Some(source) = world.get(Res::DataSource, key) else {
        return Ok(None);
    };
    if going(&source) {
        return Ok(None);
    }
    let old = status(&source);
    let mut next = old.clone();
    let mut conditions = list(&old, "/conditions").to_vec();
    let ready = match source.data.pointer("/spec/source/pvc") {
        None => new_condition("Ready", "False", "NoSource", "No source is set"),
        Some(pvc) => {
            next["source"] = json!({"pvc": pvc});
            let claim = Key::new(text(pvc, "/namespace"), text(pvc, "/name"));
            let who = (Res::DataSource, key.clone());
            world.links.add((Res::Claim, claim.clone()), who);
            if world.get(Res::Claim, &claim).is_some() {
                new_condition(
                    "Ready",
                    "True",
                    "Ready",
                    "DataSource is ready to be consumed",
                )
            } else {
                let message = format!("persistentvolumeclaims \"{}\" not found", claim.name);
                new_condition("Ready", "False", "NotFound", &message)
            }
        }
    };
    put_condition(&mut conditions, ready);
    next["conditions"] = json!(conditions);
    if let Some(patch) = merge_patch(&old, &next) {
        tracing::debug!(source = source.name_any(), "stand-in: DataSource");
        world
            .merge(
                Res::DataSource,
                CDI_MANAGER,
                &source,
                json!({"status": patch}),
            )
            .await?;
    }
    Ok(None)
}
