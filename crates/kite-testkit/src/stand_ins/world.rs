//! What every part of the stand-ins shares: the client, the caches, the agenda,
//! and the few ways of writing.
//!
//! Every write names its object's UID or version where a mix-up could hurt, and
//! takes its answer into the cache.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::Options;
use super::agenda::Agenda;
use super::behaviour::Behaviour;
use super::cache::{Key, Store};
use super::clock::Clock;
use super::names::Res;

/// When a pass wants to see its object again.
pub(super) type Pass = Result<Option<Duration>, kube::Error>;

/// One object.
type Place = (Res, Key);

/// Which objects are looked at because of another one.
#[derive(Default)]
pub(super) struct Links {
    known: Mutex<HashMap<Place, HashSet<Place>>>,
}

impl Links {
    /// Notes that `on` concerns `who`. Never taken back: a look too many costs nothing.
    pub(super) fn add(&self, on: Place, who: Place) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(on).or_default().insert(who);
    }

    pub(super) fn of(&self, on: &Place) -> Vec<Place> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(on).into_iter().flatten().cloned().collect()
    }
}

/// The shared state.
pub(super) struct World {
    pub(super) client: Client,
    pub(super) clock: Clock,
    pub(super) agenda: Arc<Agenda>,
    pub(super) behaviour: Behaviour,
    pub(super) links: Links,
    /// Whether a clone fills a temporary claim first, as with a CSI driver.
    pub(super) temporary_claims: bool,
    /// Whether claims are bound here.
    pub(super) binds_claims: bool,
    /// How many ticks of progress make a clone.
    pub(super) ticks: u32,
    stores: [Store; Res::ALL.len()],
    /// What the server said when an object could not be made, by owner's UID.
    refusals: Mutex<HashMap<String, String>>,
}

impl World {
    pub(super) fn new(client: Client, options: Options) -> Self {
        let agenda = Arc::new(Agenda::default());
        Self {
            client,
            clock: Clock::new(options.speed),
            behaviour: Behaviour::new(agenda.clone()),
            agenda,
            links: Links::default(),
            temporary_claims: options.temporary_claims,
            binds_claims: options.binds_claims,
            ticks: options.ticks,
            stores: Default::default(),
            refusals: Mutex::default(),
        }
    }

    pub(super) fn store(&self, kind: Res) -> &Store {
        &self.stores[kind as usize]
    }

    pub(super) fn get(&self, kind: Res, key: &Key) -> Option<Arc<DynamicObject>> {
        self.store(kind).get(key)
    }

    pub(super) fn api(&self, kind: Res, namespace: &str) -> Api<DynamicObject> {
        let resource = kind.api_resource();
        if kind.namespaced() {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        } else {
            Api::all_with(self.client.clone(), &resource)
        }
    }

    /// Merges a patch into an object, on the condition that it is still the
    /// same one.
    pub(super) async fn merge(
        &self,
        kind: Res,
        manager: &str,
        object: &DynamicObject,
        mut patch: Value,
    ) -> Result<(), kube::Error> {
        patch["metadata"]["uid"] = json!(object.metadata.uid);
        let api = self.api(kind, &object.namespace().unwrap_or_default());
        let params = PatchParams {
            field_manager: Some(manager.to_owned()),
            ..PatchParams::default()
        };
        let name = object.name_any();
        let found = api.patch(&name, &params, &Patch::Merge(&patch)).await?;
        self.store(kind).put(found);
        Ok(())
    }

    /// The same for the status of a kind that keeps it apart.
    pub(super) async fn merge_status(
        &self,
        kind: Res,
        manager: &str,
        object: &DynamicObject,
        status: Value,
    ) -> Result<(), kube::Error> {
        let api = self.api(kind, &object.namespace().unwrap_or_default());
        let params = PatchParams {
            field_manager: Some(manager.to_owned()),
            ..PatchParams::default()
        };
        let patch = json!({"metadata": {"uid": object.metadata.uid}, "status": status});
        let name = object.name_any();
        let found = api
            .patch_status(&name, &params, &Patch::Merge(&patch))
            .await?;
        self.store(kind).put(found);
        Ok(())
    }

    /// Sets the finalizers of an object; refused if somebody else wrote meanwhile.
    pub(super) async fn set_finalizers(
        &self,
        kind: Res,
        manager: &str,
        object: &DynamicObject,
        finalizers: &[String],
    ) -> Result<(), kube::Error> {
        let metadata = json!({
            "finalizers": finalizers,
            "resourceVersion": object.metadata.resource_version,
        });
        self.merge(kind, manager, object, json!({"metadata": metadata}))
            .await
    }

    /// Adds or takes away one finalizer; nothing is sent when it is so already.
    pub(super) async fn finalizer(
        &self,
        kind: Res,
        manager: &str,
        object: &DynamicObject,
        finalizer: &str,
        wanted: bool,
    ) -> Result<(), kube::Error> {
        let mut finalizers = object.finalizers().to_vec();
        finalizers.retain(|known| known != finalizer);
        if wanted {
            finalizers.push(finalizer.to_owned());
        }
        if finalizers.len() == object.finalizers().len() {
            return Ok(());
        }
        self.set_finalizers(kind, manager, object, &finalizers)
            .await
    }

    /// Creates an object. The server's refusal is remembered under `owner`.
    pub(super) async fn create(
        &self,
        kind: Res,
        manager: &str,
        owner: &str,
        object: Value,
    ) -> Result<(), kube::Error> {
        let object: DynamicObject =
            serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
        let params = PostParams {
            field_manager: Some(manager.to_owned()),
            ..PostParams::default()
        };
        let api = self.api(kind, &object.namespace().unwrap_or_default());
        match api.create(&params, &object).await {
            Ok(found) => {
                self.store(kind).put(found);
                self.set_refusal(owner, None);
                Ok(())
            }
            Err(kube::Error::Api(status))
                if status.code == 409 && status.reason == "AlreadyExists" =>
            {
                let found = api.get(&object.name_any()).await?;
                self.store(kind).put(found);
                Ok(())
            }
            Err(kube::Error::Api(status)) => {
                self.set_refusal(owner, Some(status.message.clone()));
                Err(kube::Error::Api(status))
            }
            Err(error) => Err(error),
        }
    }

    /// Deletes exactly this object; `at_once` leaves no time for a graceful end.
    pub(super) async fn delete(
        &self,
        kind: Res,
        object: &DynamicObject,
        at_once: bool,
    ) -> Result<(), kube::Error> {
        let params = DeleteParams {
            grace_period_seconds: at_once.then_some(0),
            preconditions: Some(Preconditions {
                uid: object.metadata.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let api = self.api(kind, &object.namespace().unwrap_or_default());
        match api.delete(&object.name_any(), &params).await {
            Ok(either) => {
                if let Some(left) = either.left() {
                    self.store(kind).put(left);
                }
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What the server last said when an object of this owner was refused.
    pub(super) fn refusal(&self, owner: &str) -> Option<String> {
        let refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.get(owner).cloned()
    }

    pub(super) fn set_refusal(&self, owner: &str, message: Option<String>) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        match message {
            Some(message) => refusals.insert(owner.to_owned(), message),
            None => refusals.remove(owner),
        };
    }

    /// Forgets what was remembered of an object that is gone.
    pub(super) fn forget(&self, object: &DynamicObject) {
        if let Some(uid) = &object.metadata.uid {
            self.clock.forget(uid);
            self.set_refusal(uid, None);
        }
    }
}

/// Whether an object is being deleted.
pub(super) fn going(object: &DynamicObject) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

/// The object's UID.
pub(super) fn uid(object: &DynamicObject) -> &str {
    object.metadata.uid.as_deref().unwrap_or_default()
}

/// Whether `owner` is the controller of `object`.
pub(super) fn controlled_by(object: &DynamicObject, owner: &DynamicObject) -> bool {
    object
        .owner_references()
        .iter()
        .any(|reference| reference.controller == Some(true) && reference.uid == uid(owner))
}

/// An ownerReference that makes `owner` the controller.
pub(super) fn owner(kind: Res, owner: &DynamicObject) -> Value {
    let resource = kind.api_resource();
    json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner.name_any(),
        "uid": owner.metadata.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}
