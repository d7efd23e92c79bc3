//! The CustomResourceDefinitions, made from the types.
//!
//! Two things that the derive cannot say are added here: a `status` that is
//! there from the first read, and no `nullable`, so that `null` means unset.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::CustomResourceExt;
use serde_json::json;

use crate::{KiteHostClaim, KitePlatform, KiteUser, KiteVirtualMachine};

/// All of Kite's CustomResourceDefinitions, in the order in which they are installed.
pub fn all() -> Vec<CustomResourceDefinition> {
    [
        KiteUser::crd(),
        KiteVirtualMachine::crd(),
        KitePlatform::crd(),
        KiteHostClaim::crd(),
    ]
    .into_iter()
    .map(finish)
    .collect()
}

fn finish(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        if let Some(root) = version
            .schema
            .as_mut()
            .and_then(|s| s.open_api_v3_schema.as_mut())
        {
            forbid_null(root);
            if let Some(status) = root.properties.as_mut().and_then(|p| p.get_mut("status")) {
                // With the default of -1 inside, a fresh object reads as not yet observed (rule C-9).
                status.default = Some(JSON(json!({})));
            }
        }
    }
    crd
}

/// Takes `nullable` out of a schema: a nullable optional field lets a transition
/// rule be evaded by setting null and then another value (rule C-17).
fn forbid_null(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    for child in schema.properties.iter_mut().flat_map(|p| p.values_mut()) {
        forbid_null(child);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => forbid_null(item),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(forbid_null),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // C-17: the API server does not know unsigned formats.
    #[test]
    fn no_unsigned_format_and_no_nullable_field_is_in_any_schema() {
        let text = serde_json::to_string(&all()).unwrap();
        assert!(
            !text.contains("uint"),
            "an unsigned integer format is in a CRD"
        );
        assert!(!text.contains("nullable"), "a nullable field is in a CRD");
    }

    // Client-side apply stores the whole object in an annotation of at most 256 kB.
    #[test]
    fn every_crd_stays_below_a_hundred_kilobytes() {
        for crd in all() {
            let size = serde_json::to_string(&crd).unwrap().len();
            assert!(
                size < 100 * 1024,
                "{:?} has {size} bytes",
                crd.metadata.name
            );
        }
    }

    #[test]
    fn every_field_is_described() {
        fn walk(path: &str, schema: &JSONSchemaProps, missing: &mut Vec<String>) {
            for (name, child) in schema.properties.iter().flatten() {
                let path = format!("{path}.{name}");
                if child.description.is_none() && name != "metadata" {
                    missing.push(path.clone());
                }
                walk(&path, child, missing);
            }
            if let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items {
                walk(path, item, missing);
            }
        }
        let mut missing = Vec::new();
        for crd in all() {
            for version in &crd.spec.versions {
                let schema = version
                    .schema
                    .as_ref()
                    .unwrap()
                    .open_api_v3_schema
                    .as_ref()
                    .unwrap();
                walk(&crd.spec.names.kind, schema, &mut missing);
            }
        }
        assert!(
            missing.is_empty(),
            "fields without a description: {missing:?}"
        );
    }
}
