//! The one way Kite writes (rules C-2, C-5, C-6, C-7).
//!
//! * The first write of an object is a create-only apply: with a resourceVersion
//!   in the body the server answers 409 when the object exists, even to a forced
//!   apply, so nothing of others is ever merged into.
//! * Every later apply carries the object's UID: a successor of the same name is
//!   never written to by mistake.
//! * What would change nothing is not sent, and counted.
//! * A delete carries UID and resourceVersion.
//!
//! Which objects are ours, and when two are the same, is the caller's to say.

use std::fmt::Debug;
use std::sync::Arc;

use either::Either;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy};
use kube::core::Resource;
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::cache::{Cache, Key};
use crate::errors::{Refusal, refusal};
use crate::metrics::Metrics;
use crate::outdated::Outdated;
pub use crate::write_error::WriteError;
use crate::write_error::api_error;

/// What a writer may read and write: an object without run-time type information.
pub trait Object:
    Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static
{
}
impl<K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static>
    Object for K
{
}

/// What came of making sure that an object is as wanted.
#[derive(Clone, Debug)]
pub enum Ensured<K> {
    /// It was so already; nothing was sent.
    Unchanged(Arc<K>),
    /// It was made.
    Created(Arc<K>),
    /// It was changed.
    Updated(Arc<K>),
}

impl<K> Ensured<K> {
    /// The object as the server has it.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Unchanged(o) | Self::Created(o) | Self::Updated(o) => o,
        }
    }

    /// Whether something was written.
    pub const fn wrote(&self) -> bool {
        !matches!(self, Self::Unchanged(_))
    }
}

/// Writes under one field manager.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    manager: &'static str,
    metrics: Arc<Metrics>,
    outdated: Outdated,
}

/// One object to write: where it is, what it is to be called in messages, what is known of it.
pub struct Place<'a, K> {
    /// The API of its kind, in its namespace.
    pub api: Api<K>,
    /// What is known of its kind.
    pub cache: &'a Cache<K>,
    /// Its key.
    pub key: Key,
}

impl<K: Object> Place<'_, K> {
    fn kind() -> String {
        K::kind(&()).into_owned()
    }

    /// Whether an answer is this object: one of another kind may be read as one that says nothing
    /// (row AP8).
    fn is_expected(&self, object: &K) -> bool {
        object.meta().name.as_ref() == Some(&self.key.name) && object.meta().uid.is_some()
    }

    fn odd(&self, doing: &'static str) -> WriteError {
        WriteError::Odd {
            doing,
            kind: Self::kind(),
            name: self.key.name.clone(),
        }
    }
}

impl Writer {
    /// A writer under a controller's name (rule C-2).
    pub fn new(client: Client, manager: &'static str, metrics: Arc<Metrics>) -> Self {
        Self {
            client,
            manager,
            metrics,
            outdated: Outdated::default(),
        }
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Makes sure that an object is there and as wanted.
    ///
    /// `ours` judges ownership by UID; `same` whether everything wanted is there already.
    pub async fn ensure<K: Object>(
        &self,
        place: &Place<'_, K>,
        wanted: &(impl Serialize + Sync),
        ours: impl Fn(&ObjectMeta) -> bool + Sync,
        same: impl Fn(&K) -> bool + Sync,
    ) -> Result<Ensured<K>, WriteError> {
        match place.cache.get(&place.key) {
            Some(live) => self.bring(place, live, wanted, ours, same).await,
            None => match self.create(place, wanted).await {
                Err(error) if error.refusal() == Some(Refusal::Conflict) => {
                    match self.live(place).await? {
                        Some(live) => {
                            let live = Arc::new(live);
                            if ours(live.meta()) {
                                // The cache is label-selected and may lag; now it knows.
                                place.cache.remember(live.as_ref().clone());
                            }
                            self.bring(place, live, wanted, ours, same).await
                        }
                        // It went between the two calls; the next try creates it.
                        None => Err(error),
                    }
                }
                created => created.map(Ensured::Created),
            },
        }
    }

    async fn bring<K: Object>(
        &self,
        place: &Place<'_, K>,
        live: Arc<K>,
        wanted: &(impl Serialize + Sync),
        ours: impl Fn(&ObjectMeta) -> bool + Sync,
        same: impl Fn(&K) -> bool + Sync,
    ) -> Result<Ensured<K>, WriteError> {
        let (kind, name) = (Place::<K>::kind(), place.key.name.clone());
        if !ours(live.meta()) {
            self.metrics.wrote(&kind, "name_conflict");
            return Err(WriteError::NameConflict { kind, name });
        }
        if live.meta().deletion_timestamp.is_some() {
            return Err(WriteError::Terminating { kind, name });
        }
        if same(&live) {
            self.metrics.wrote(&kind, "suppressed");
            return Ok(Ensured::Unchanged(live));
        }
        let uid = live.meta().uid.clone().unwrap_or_default();
        self.update(place, &uid, wanted).await.map(Ensured::Updated)
    }

    /// Creates, or answers 409; never merges into what is there.
    pub async fn create<K: Object>(
        &self,
        place: &Place<'_, K>,
        wanted: &(impl Serialize + Sync),
    ) -> Result<Arc<K>, WriteError> {
        // Any resourceVersion that no object can have makes an apply create-only.
        self.apply(place, "create", wanted, json!({"resourceVersion": "1"}))
            .await
    }

    /// Changes our fields of the object with this UID, or answers 409 or 422.
    pub async fn update<K: Object>(
        &self,
        place: &Place<'_, K>,
        uid: &str,
        wanted: &(impl Serialize + Sync),
    ) -> Result<Arc<K>, WriteError> {
        self.apply(place, "change", wanted, json!({"uid": uid}))
            .await
    }

    async fn apply<K: Object>(
        &self,
        place: &Place<'_, K>,
        doing: &'static str,
        wanted: &(impl Serialize + Sync),
        guard: Value,
    ) -> Result<Arc<K>, WriteError> {
        let (kind, name) = (Place::<K>::kind(), place.key.name.as_str());
        let mut body =
            serde_json::to_value(wanted).map_err(|source| WriteError::Unserialisable {
                kind: kind.clone(),
                name: name.to_owned(),
                source,
            })?;
        merge(&mut body["metadata"], guard);
        let params = PatchParams::apply(self.manager).force();
        let answer = place.api.patch(name, &params, &Patch::Apply(&body)).await;
        self.metrics
            .wrote(&kind, if answer.is_ok() { doing } else { "refused" });
        match answer {
            Ok(object) if place.is_expected(&object) => Ok(place.cache.remember(object)),
            Ok(_) => Err(place.odd(doing)),
            Err(source) => Err(api_error(doing, kind, name, source)),
        }
    }

    /// Looks at the server itself, where a decision rests on what is not there (rule C-6).
    pub async fn live<K: Object>(&self, place: &Place<'_, K>) -> Result<Option<K>, WriteError> {
        let name = place.key.name.as_str();
        match place.api.get_opt(name).await {
            Ok(Some(object)) if !place.is_expected(&object) => Err(place.odd("read")),
            Ok(found) => Ok(found),
            Err(source) => Err(api_error("read", Place::<K>::kind(), name, source)),
        }
    }

    /// Deletes the object of this UID and version; one that is gone already is fine.
    /// True when it is gone for good, false while finalizers hold it.
    pub async fn delete<K: Object>(
        &self,
        place: &Place<'_, K>,
        meta: &ObjectMeta,
        propagation: PropagationPolicy,
    ) -> Result<bool, WriteError> {
        let (kind, name) = (Place::<K>::kind(), place.key.name.as_str());
        let uid = meta.uid.clone().unwrap_or_default();
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.clone()),
                resource_version: meta.resource_version.clone(),
            }),
            propagation_policy: Some(propagation),
            ..DeleteParams::default()
        };
        match place.api.delete(name, &params).await {
            Ok(Either::Left(object)) if !place.is_expected(&object) => Err(place.odd("delete")),
            Ok(Either::Left(object)) => {
                self.metrics.wrote(&kind, "delete");
                // Some kinds answer with the object although it is gone already.
                if object.meta().finalizers.as_ref().is_none_or(Vec::is_empty)
                    && object
                        .meta()
                        .deletion_grace_period_seconds
                        .unwrap_or_default()
                        == 0
                {
                    place.cache.forget(&place.key, &uid);
                    return Ok(true);
                }
                place.cache.remember(object);
                Ok(false)
            }
            Ok(Either::Right(_)) => {
                self.metrics.wrote(&kind, "delete");
                place.cache.forget(&place.key, &uid);
                Ok(true)
            }
            Err(source) if refusal(&source) == Refusal::NotFound => {
                place.cache.forget(&place.key, &uid);
                Ok(true)
            }
            Err(source) => Err(api_error("delete", kind, name, source)),
        }
    }

    /// Applies this writer's whole part of a status. With `version`, only to the object as it was decided on;
    /// a version that was refused as old is not sent again.
    pub async fn status<K: Object>(
        &self,
        place: &Place<'_, K>,
        status: &(impl Serialize + Sync),
        version: Option<&str>,
        force: bool,
    ) -> Result<Arc<K>, WriteError> {
        let (kind, name) = (Place::<K>::kind(), place.key.name.as_str());
        let doing = "write the status of";
        if self.outdated.is(&kind, &place.key, version) {
            return Err(WriteError::Stale {
                doing,
                kind,
                name: name.to_owned(),
            });
        }
        let mut body = json!({
            "apiVersion": K::api_version(&()),
            "kind": kind,
            "metadata": {"name": name},
            "status": status,
        });
        if let Some(version) = version {
            body["metadata"]["resourceVersion"] = json!(version);
        }
        let params = PatchParams {
            force,
            ..PatchParams::apply(self.manager)
        };
        let answer = place
            .api
            .patch_status(name, &params, &Patch::Apply(&body))
            .await;
        self.outdated.note(&kind, &place.key, version, &answer);
        self.metrics
            .wrote(&kind, if answer.is_ok() { "status" } else { "refused" });
        match answer {
            Ok(object) if place.is_expected(&object) => Ok(place.cache.remember(object)),
            Ok(_) => Err(place.odd(doing)),
            Err(source) => Err(api_error(doing, kind, name, source)),
        }
    }

    /// Applies a JSON patch; the caller puts a `test` on what it read (rules C-7 (e), V-2).
    pub async fn patch<K: Object>(
        &self,
        place: &Place<'_, K>,
        doing: &'static str,
        operations: Value,
    ) -> Result<Arc<K>, WriteError> {
        let (kind, name) = (Place::<K>::kind(), place.key.name.as_str());
        let patch: json_patch::Patch =
            serde_json::from_value(operations).map_err(|source| WriteError::Unserialisable {
                kind: kind.clone(),
                name: name.to_owned(),
                source,
            })?;
        let params = PatchParams {
            field_manager: Some(self.manager.to_owned()),
            ..PatchParams::default()
        };
        let answer = place
            .api
            .patch(name, &params, &Patch::Json::<()>(patch))
            .await;
        self.metrics
            .wrote(&kind, if answer.is_ok() { "patch" } else { "refused" });
        match answer {
            Ok(object) if place.is_expected(&object) => Ok(place.cache.remember(object)),
            Ok(_) => Err(place.odd(doing)),
            // The server answers 422 when a `test` fails.
            Err(source) if refusal(&source) == Refusal::Invalid => Err(WriteError::Stale {
                doing,
                kind,
                name: name.to_owned(),
            }),
            Err(source) => Err(api_error(doing, kind, name, source)),
        }
    }

    /// Takes away what others added and what changes what our object does (rule C-7 (e)).
    /// The pointers are removed one after the other.
    pub async fn remove_paths<K: Object>(
        &self,
        place: &Place<'_, K>,
        object: &K,
        pointers: impl IntoIterator<Item = String>,
    ) -> Result<Arc<K>, WriteError> {
        let mut operations = vec![unchanged(object.meta())];
        operations.extend(
            pointers
                .into_iter()
                .map(|path| json!({"op": "remove", "path": path})),
        );
        self.patch(place, "take additions from", Value::Array(operations))
            .await
    }
}

/// The operation that fails when the object is not the one that was looked at.
pub(crate) fn unchanged(meta: &ObjectMeta) -> Value {
    json!({"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version})
}

/// Adds the entries of `from` to `into`, which becomes an object if it is none.
fn merge(into: &mut Value, from: Value) {
    if !into.is_object() {
        *into = json!({});
    }
    if let (Some(into), Value::Object(from)) = (into.as_object_mut(), from) {
        into.extend(from);
    }
}
