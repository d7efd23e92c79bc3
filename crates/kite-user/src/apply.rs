//! Step 4: writes what differs, in an order that is explained.
//!
//! Namespace, isolation, quota, then the rights: whoever may work in the
//! namespace finds it isolated and limited already. One child that cannot be
//! written does not stop the others, and all are reported. What passes by itself
//! ends the pass instead, which is then tried again.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Namespace, ResourceQuota};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kite_api::KiteUser;
use kite_render::compare::{Compare, Rules, differences};
use kite_render::user::{ISOLATION_POLICY, LIMIT_RANGE, QUOTA, tenant_role_binding};
use kite_render::validate::ValidUser;
use kite_runtime::apply::{Object, Place, WriteError, Writer};
use kite_runtime::{Cache, Key, Refusal};
use kube::api::PropagationPolicy;
use kube::core::Resource;
use kube::{Api, ResourceExt};
use serde::Serialize;

use crate::observe::{Caches, NamespaceMeta};
use crate::plan::{
    Children, Standing, is_bound, is_counted, is_taken_in, judge, namespace_of, tenant_binding_name,
};
use crate::status::{Part, QUOTA_PENDING};

/// The writes of one pass, and what came of them.
pub struct Work<'a> {
    /// Writes.
    pub writer: &'a Writer,
    /// What is known.
    pub caches: &'a Caches,
    /// What was written, for people.
    pub wrote: Vec<String>,
    /// The first refusal that does not pass by itself; the pass comes back to it.
    pub refused: Option<WriteError>,
}

/// A child as the server has it now.
struct Kept<K> {
    object: Arc<K>,
    /// What still differs from what was written, which no write of ours can mend.
    differs: Option<String>,
}

/// The namespace as it was found or made.
pub struct Found {
    /// Whose it is.
    pub standing: Standing,
    /// Whether the watch shows it; what it does not show has to be looked at again by time.
    pub watched: bool,
}

impl<'a> Work<'a> {
    /// Nothing is written yet.
    pub fn new(writer: &'a Writer, caches: &'a Caches) -> Self {
        Self {
            writer,
            caches,
            wrote: Vec::new(),
            refused: None,
        }
    }

    /// Makes the namespace, or brings it up to date if it is the user's (rule U-3).
    pub async fn namespace(
        &mut self,
        user: &KiteUser,
        valid: &ValidUser,
    ) -> Result<Found, WriteError> {
        let wanted = namespace_of(&valid.owner, &valid.namespace);
        let place = self.namespace_place(valid.namespace.as_str());
        let by_uid = |uid: &str| self.caches.user_of(uid);
        let judged = |live: Option<&NamespaceMeta>| judge(live.map(|n| &n.metadata), user, by_uid);
        let mut live = place.cache.get(&place.key);
        let watched = live.is_some();
        let mut standing = judged(live.as_deref());
        if matches!(standing, Standing::Absent) {
            match self.writer.create(&place, &wanted).await {
                Ok(_) => {
                    self.wrote.push(format!("Namespace {}", valid.namespace));
                    return Ok(Found {
                        standing: Standing::Ours,
                        watched: true,
                    });
                }
                // The cache is label-selected and proves no absence: look at the server itself.
                Err(error) if error.refusal() == Some(Refusal::Conflict) => {
                    live = self.writer.live(&place).await?.map(Arc::new);
                    if live.is_none() {
                        return Err(error);
                    }
                    standing = judged(live.as_deref());
                }
                Err(error) => return Err(error),
            }
        }
        if let (Standing::Ours | Standing::Left, Some(live)) = (&standing, &live) {
            self.update_namespace(&place, live, &wanted).await?;
        }
        Ok(Found { standing, watched })
    }

    async fn update_namespace(
        &mut self,
        place: &Place<'_, NamespaceMeta>,
        live: &NamespaceMeta,
        wanted: &Namespace,
    ) -> Result<(), WriteError> {
        const PLAIN: Rules = Rules {
            amounts: &[],
            keyed: &[],
        };
        if differences(wanted, live, &PLAIN).is_empty() {
            return Ok(());
        }
        let uid = live.uid().unwrap_or_default();
        self.writer.update(place, &uid, wanted).await?;
        self.wrote.push(format!("Namespace {}", place.key.name));
        Ok(())
    }

    /// Hands the namespace to another owner.
    pub async fn rebind_namespace(
        &mut self,
        live: &NamespaceMeta,
        wanted: &Namespace,
    ) -> Result<(), WriteError> {
        let place = self.namespace_place(&live.name_any());
        self.update_namespace(&place, live, wanted).await
    }

    fn namespace_place(&self, name: &str) -> Place<'a, NamespaceMeta> {
        Place {
            api: Api::all(self.writer.client().clone()),
            cache: &self.caches.namespaces,
            key: Key::cluster(name),
        }
    }

    /// The network policies.
    pub async fn isolation(&mut self, children: &Children) -> Result<Part, WriteError> {
        let mut part = Part::good(
            "Applied",
            format!("the network policies {ISOLATION_POLICY} and kite-clone are in force"),
        );
        for policy in &children.policies {
            let kept = self.keep(&self.caches.policies, policy).await?;
            part = worse(part, kept.err());
        }
        Ok(part)
    }

    /// Whether the isolation stands, asked of the server where the cache says so: one watch may
    /// show late what another has shown already, and the quota is the last to be taken away.
    pub async fn stands(&self, policies: &[NetworkPolicy]) -> Result<bool, WriteError> {
        let cache = &self.caches.policies;
        let shown = policies.iter().map(Key::of);
        let Some(key) = shown.into_iter().find(|key| cache.get(key).is_some()) else {
            return Ok(false);
        };
        let live = self.writer.live(&self.place(cache, key)).await?;
        Ok(live.is_some())
    }

    /// The quota, and the limit range it may need.
    pub async fn quota(
        &mut self,
        namespace: &str,
        children: &Children,
    ) -> Result<(Part, Limits), WriteError> {
        let caches = self.caches;
        let mut limits = Limits::new();
        let mut part = if let Some(quota) = &children.quota {
            match self.keep(&caches.quotas, quota).await? {
                Ok(live) => {
                    let spec = live.spec.as_ref();
                    limits = spec.and_then(|s| s.hard.clone()).unwrap_or_default();
                    quota_part(Some(&live))
                }
                Err(part) => part,
            }
        } else {
            self.remove(&caches.quotas, Key::new(namespace, QUOTA))
                .await?;
            Part::good(
                "NotRequested",
                "no quota is set, neither here nor by the platform",
            )
        };
        if let Some(range) = &children.limit_range {
            let kept = self.keep(&caches.limit_ranges, range).await?;
            part = worse(part, kept.err());
        } else {
            let key = Key::new(namespace, LIMIT_RANGE);
            self.remove(&caches.limit_ranges, key).await?;
        }
        Ok((part, limits))
    }

    /// kite-vm's binding, where the namespace is the user's, and the tenants'.
    pub async fn access(
        &mut self,
        user: &KiteUser,
        valid: &ValidUser,
        vm_binding: Option<&RoleBinding>,
    ) -> Result<Part, WriteError> {
        let mut part = Part::good("Applied", "the role bindings are in force");
        if let Some(binding) = vm_binding {
            part = worse(part, self.binding(binding).await?.err());
        }
        match tenant_role_binding(valid) {
            Some(binding) => part = worse(part, self.binding(&binding).await?.err()),
            None => self.remove_tenants(user).await?,
        }
        Ok(part)
    }

    /// Removes the binding of a user's subjects.
    pub async fn remove_tenants(&mut self, user: &KiteUser) -> Result<(), WriteError> {
        let key = Key::new(&user.spec.namespace, tenant_binding_name(user));
        self.remove(&self.caches.bindings, key).await
    }

    async fn binding(
        &mut self,
        wanted: &RoleBinding,
    ) -> Result<Result<Arc<RoleBinding>, Part>, WriteError> {
        let cache = &self.caches.bindings;
        let key = Key::of(wanted);
        // The role of a binding never changes; one that names another has to be made anew.
        if cache
            .get(&key)
            .is_some_and(|live| live.role_ref != wanted.role_ref)
        {
            self.remove(cache, key).await?;
        }
        self.keep(cache, wanted).await
    }

    /// Closes a quota or opens it again; what came of it is the caller's to judge.
    pub async fn bring<K>(&mut self, cache: &Cache<K>, wanted: &K) -> Result<Arc<K>, WriteError>
    where
        K: Object + Compare + Serialize + Resource<Scope = NamespaceResourceScope>,
    {
        self.child(cache, wanted).await.map(|kept| kept.object)
    }

    /// Keeps a child: the object, or what its part has to say, or the end of the pass.
    async fn keep<K>(
        &mut self,
        cache: &Cache<K>,
        wanted: &K,
    ) -> Result<Result<Arc<K>, Part>, WriteError>
    where
        K: Object + Compare + Serialize + Resource<Scope = NamespaceResourceScope>,
    {
        match self.child(cache, wanted).await {
            Ok(Kept {
                object,
                differs: None,
            }) => Ok(Ok(object)),
            Ok(Kept { object, differs }) => Ok(Err(not_in_force(object.as_ref(), differs))),
            Err(error) => {
                let Some(part) = Part::of_error(&error) else {
                    return Err(error);
                };
                self.refused.get_or_insert(error);
                Ok(Err(part))
            }
        }
    }

    async fn child<K>(&mut self, cache: &Cache<K>, wanted: &K) -> Result<Kept<K>, WriteError>
    where
        K: Object + Compare + Serialize + Resource<Scope = NamespaceResourceScope>,
    {
        let place = self.place(cache, Key::of(wanted));
        let same = |live: &K| wanted.differences(live).is_empty();
        let ensured = self.writer.ensure(&place, wanted, is_bound, same).await?;
        let mut wrote = ensured.wrote();
        let mut object = Arc::clone(ensured.object());
        let additions = wanted.additions(&object);
        if !additions.is_empty() {
            let pointers = additions.into_iter().map(|a| a.pointer);
            object = self.writer.remove_paths(&place, &object, pointers).await?;
            wrote = true;
        }
        if wrote {
            let kind = K::kind(&());
            self.wrote.push(format!("{kind} {}", place.key.name));
        }
        let rest = wanted.differences(&object);
        let differs = rest.first().map(ToString::to_string);
        Ok(Kept { object, differs })
    }

    /// Removes a child that is Kite's; nothing happens when there is none.
    pub async fn remove<K>(&mut self, cache: &Cache<K>, key: Key) -> Result<(), WriteError>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let Some(live) = cache.get(&key) else {
            return Ok(());
        };
        if !is_bound(live.meta()) || live.meta().deletion_timestamp.is_some() {
            return Ok(());
        }
        let place = self.place(cache, key);
        let name = format!("{} {}", K::kind(&()), place.key.name);
        self.writer
            .delete(&place, live.meta(), PropagationPolicy::Background)
            .await?;
        self.wrote.push(name);
        Ok(())
    }

    fn place<'c, K>(&self, cache: &'c Cache<K>, key: Key) -> Place<'c, K>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        Place {
            api: Api::namespaced(self.writer.client().clone(), &key.namespace),
            cache,
            key,
        }
    }
}

/// The limits of a quota.
pub type Limits =
    std::collections::BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>;

/// What is to be said of a quota that is there as it should be, or not there yet.
pub fn quota_part(quota: Option<&ResourceQuota>) -> Part {
    match quota.filter(|quota| is_taken_in(quota)) {
        Some(quota) if is_counted(quota) => {
            Part::good("Enforced", format!("the limits of {QUOTA} are in force"))
        }
        Some(_) => Part::coming(
            "QuotaUncounted",
            "the server does not count machines yet and refuses them until it does; it looks for new kinds every few minutes",
        ),
        None => {
            let waits = format!("the server has not yet taken in the limits of {QUOTA}");
            Part::coming(QUOTA_PENDING, waits)
        }
    }
}

fn not_in_force<K: Object>(object: &K, differs: Option<impl fmt::Display>) -> Part {
    let what = differs.map(|d| d.to_string()).unwrap_or_default();
    let (kind, name) = (K::kind(&()), object.name_any());
    Part::stuck(
        "NotInForce",
        format!("{kind} {name} was written and still differs: {what}; something else changes it"),
    )
}

/// The worse of two, the earlier one when they are equal.
fn worse(part: Part, other: Option<Part>) -> Part {
    match other {
        Some(other) if other.progress > part.progress => other,
        _ => part,
    }
}
