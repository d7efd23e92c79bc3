//! Our finalizer on objects that others put theirs on too (rule V-2).
//!
//! Adding and removing are JSON patches with a `test`, so that a list that
//! changed in between is looked at again and never overwritten (fault F-13).

use std::sync::Arc;

use serde_json::json;

use crate::apply::{Object, Place, WriteError, Writer, unchanged};
use crate::errors::Refusal;

impl Writer {
    /// Adds our finalizer and keeps others' (rule V-2).
    pub async fn add_finalizer<K: Object>(
        &self,
        place: &Place<'_, K>,
        object: &K,
        finalizer: &str,
    ) -> Result<Arc<K>, WriteError> {
        let present = object.meta().finalizers.clone().unwrap_or_default();
        let version = unchanged(object.meta());
        let operations = if present.is_empty() {
            json!([version, {"op": "add", "path": "/metadata/finalizers", "value": [finalizer]}])
        } else {
            json!([version, {"op": "add", "path": "/metadata/finalizers/-", "value": finalizer}])
        };
        self.patch(place, "add the finalizer to", operations).await
    }

    /// Removes our finalizer and no other (rows CR9, CR10). An object that is gone is fine.
    pub async fn remove_finalizer<K: Object>(
        &self,
        place: &Place<'_, K>,
        object: &K,
        finalizer: &str,
    ) -> Result<(), WriteError> {
        let present = object.meta().finalizers.clone().unwrap_or_default();
        let Some(index) = present.iter().position(|f| f == finalizer) else {
            return Ok(());
        };
        let path = format!("/metadata/finalizers/{index}");
        let operations = json!([
            {"op": "test", "path": path, "value": finalizer},
            {"op": "remove", "path": path},
        ]);
        match self
            .patch(place, "remove the finalizer from", operations)
            .await
        {
            Ok(object) => {
                if object.meta().finalizers.as_ref().is_none_or(Vec::is_empty)
                    && object.meta().deletion_timestamp.is_some()
                {
                    place
                        .cache
                        .forget(&place.key, object.meta().uid.as_deref().unwrap_or_default());
                }
                Ok(())
            }
            Err(error) if error.refusal() == Some(Refusal::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
