//! Step 4: the annotations that only this controller writes, and the delete.
//!
//! Every apply carries the namespace's UID, so that none can make it anew (N-9),
//! and all of this controller's annotations, so that what it leaves out is
//! removed. The delete carries UID and resourceVersion: whatever has changed
//! since the decision stops it (N-7).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use kite_api::labels::{DELETION_HELD, ORPHANED_SINCE, RECENT_DELETIONS};
use kite_runtime::apply::{Place, WriteError, Writer};
use kite_runtime::{Cache, Key};
use kube::api::PropagationPolicy;
use kube::core::PartialObjectMetaExt as _;
use kube::{Api, ResourceExt};

fn place<'c>(
    writer: &Writer,
    cache: &'c Cache<Namespace>,
    namespace: &Namespace,
) -> Place<'c, Namespace> {
    Place {
        api: Api::all(writer.client().clone()),
        cache,
        key: Key::of(namespace),
    }
}

/// Writes the mark and why the deletion is held back; neither, when nobody misses the namespace.
pub async fn mark(
    writer: &Writer,
    cache: &Cache<Namespace>,
    namespace: &Namespace,
    since: Option<Timestamp>,
    held: Option<&str>,
) -> Result<(), WriteError> {
    let since = since.map(|at| (ORPHANED_SINCE.to_owned(), at.to_string()));
    let held = held.map(|why| (DELETION_HELD.to_owned(), why.to_owned()));
    let annotations: BTreeMap<_, _> = since.into_iter().chain(held).collect();
    let wanted = ObjectMeta {
        name: Some(namespace.name_any()),
        annotations: (!annotations.is_empty()).then_some(annotations),
        ..ObjectMeta::default()
    };
    let wanted = wanted.into_request_partial::<Namespace>();
    let uid = namespace.uid().unwrap_or_default();
    writer
        .update(&place(writer, cache, namespace), &uid, &wanted)
        .await?;
    Ok(())
}

/// Writes on Kite's own namespace which ones were deleted lately, if it is still as it was looked
/// at: another leader's entry is not lost.
pub async fn record(writer: &Writer, own: &Namespace, deletions: String) -> Result<(), WriteError> {
    let wanted = ObjectMeta {
        name: Some(own.name_any()),
        resource_version: own.resource_version(),
        annotations: Some([(RECENT_DELETIONS.to_owned(), deletions)].into()),
        ..ObjectMeta::default()
    };
    let wanted = wanted.into_request_partial::<Namespace>();
    let uid = own.uid().unwrap_or_default();
    // It is not one of the namespaces that passes are about, and is not remembered as such.
    let unused = Cache::new(|_| 0);
    writer
        .update(&place(writer, &unused, own), &uid, &wanted)
        .await?;
    Ok(())
}

/// Deletes the namespace as it was looked at.
pub async fn delete(
    writer: &Writer,
    cache: &Cache<Namespace>,
    namespace: &Namespace,
) -> Result<(), WriteError> {
    let place = place(writer, cache, namespace);
    writer
        .delete(&place, &namespace.metadata, PropagationPolicy::Background)
        .await?;
    Ok(())
}
