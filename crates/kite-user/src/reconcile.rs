//! The pass over one KiteUser, from top to bottom: observe, validate, plan,
//! apply, tell. A user that goes takes another way (`retire`).

mod retire;
mod tell;

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kite_api::KiteUser;
use kite_api::labels::{USER_FINALIZER, USER_UID};
use kite_render::platform::InForce;
use kite_render::user::ServiceAccount;
use kite_render::validate::{DnsLabel, ValidPlatform, ValidUser};
use kite_runtime::apply::{Place, WriteError, Writer};
use kite_runtime::errors::{refusal, words};
use kite_runtime::events::Events;
use kite_runtime::patience::Patience;
use kite_runtime::{Class, Failure, Key, Next, Pass};
use kube::{Api, ResourceExt};
use tokio::sync::mpsc::UnboundedSender;

use crate::apply::{Found, Limits, Work, quota_part};
use crate::observe::Caches;
use crate::observe::siblings::Siblings;
use crate::plan::{Children, Standing, is_bound};
use crate::status::{self, Part, Parts, Progress};

/// Everything that a pass works with.
pub struct Reconciler {
    /// What the watches show.
    pub caches: Caches,
    /// Who shares a namespace with whom.
    pub siblings: Arc<Siblings>,
    /// The platform's settings.
    pub in_force: InForce,
    /// Namespaces that no user may have, beside the platform's.
    pub reserved: Vec<DnsLabel>,
    /// kite-vm's account.
    pub vm_account: ServiceAccount,
    /// How many disks of a user may be filled at a time.
    pub clones: i64,
    /// Writes.
    pub writer: Writer,
    /// Events.
    pub events: Events,
    /// Wakes users from outside the watches.
    pub waker: UnboundedSender<Key>,
    /// Waits a moment before it tells what may pass by itself.
    pub patience: Patience,
}

/// Why a pass did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A write was refused or did not arrive.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A live look failed; nothing is decided without it.
    #[error("cannot list {what}: {}", words(.source))]
    List {
        /// What was to be listed.
        what: &'static str,
        /// The answer.
        source: kube::Error,
    },
    /// The namespace is not the user's and no watch shows when that changes.
    #[error("namespace {0} is not this user's; it is looked at again")]
    NotOurs(String),
}

impl Error {
    pub(crate) const fn list(what: &'static str, source: kube::Error) -> Self {
        Self::List { what, source }
    }
}

impl Failure for Error {
    fn class(&self) -> Class {
        match self {
            Self::Write(error) => error.class(),
            Self::List { source, .. } => refusal(source).class(),
            Self::NotOurs(_) => Class::NotReady,
        }
    }
}

/// What a pass found and did.
struct Outcome {
    parts: Parts,
    wrote: Vec<String>,
    /// Why to come back by time.
    again: Option<Error>,
}

impl Pass for Reconciler {
    type Error = Error;

    async fn pass(&self, key: Key) -> Result<Next, Error> {
        let Some(user) = self.caches.users.get(&key) else {
            return self.without(&key).await;
        };
        if self.siblings.note(&user) {
            self.wake_siblings(&user);
        }
        if user.metadata.deletion_timestamp.is_some() {
            return self.retire(&user).await;
        }
        let platform = self.platform();
        let valid = match ValidUser::parse(&user, &platform) {
            Ok(valid) => valid,
            Err(problems) => {
                let part = Part::stuck("InvalidSpec", problems.to_string());
                let refused = status::of(&user, Parts::all(&part), &now());
                return self.tell(&user, refused).await.map(|()| Next::OnChange);
            }
        };
        let user = self.with_finalizer(user).await?;
        let outcome = self.bring(&user, &valid, &platform).await?;
        self.conclude(&user, outcome).await
    }
}

impl Reconciler {
    /// The platform's settings in force.
    pub(crate) fn platform(&self) -> ValidPlatform {
        self.caches.platform(&self.in_force, &self.reserved)
    }

    /// The object is gone, or its shape is unknown.
    async fn without(&self, key: &Key) -> Result<Next, Error> {
        if let Some(invalid) = self.caches.users.malformed(key) {
            return self.tell_malformed(key, &invalid).await;
        }
        for sibling in self.siblings.forget(&key.name) {
            self.wake(sibling);
        }
        self.patience.reset(key);
        Ok(Next::Gone)
    }

    async fn with_finalizer(&self, user: Arc<KiteUser>) -> Result<Arc<KiteUser>, Error> {
        if user.finalizers().iter().any(|f| f == USER_FINALIZER) {
            return Ok(user);
        }
        let place = self.place(&user);
        Ok(self
            .writer
            .add_finalizer(&place, user.as_ref(), USER_FINALIZER)
            .await?)
    }

    /// Plan and apply: the namespace decides what else there is to do.
    async fn bring(
        &self,
        user: &Arc<KiteUser>,
        valid: &ValidUser,
        platform: &ValidPlatform,
    ) -> Result<Outcome, Error> {
        let mut work = Work::new(&self.writer, &self.caches);
        let namespace = valid.namespace.as_str();
        let Found { standing, watched } = match work.namespace(user, valid).await {
            Ok(found) => found,
            Err(error) => {
                let Some(part) = Part::of_error(&error) else {
                    return Err(error.into());
                };
                return Ok(Outcome {
                    parts: Parts::all(&part),
                    wrote: work.wrote,
                    again: Some(error.into()),
                });
            }
        };
        let parts = if let Some(part) = in_the_way(&standing, user, namespace) {
            Parts::all(&part)
        } else if let Standing::Shared(bound) = &standing {
            self.bring_access(&mut work, user, valid, (bound, platform))
                .await?
        } else {
            if matches!(standing, Standing::Left) {
                self.tell_readopted(user).await;
            }
            self.bring_children(&mut work, user, valid, platform)
                .await?
        };
        let not_ours = parts.namespace.progress != Progress::Good && !watched;
        let again = work.refused.map(Error::from);
        Ok(Outcome {
            parts,
            wrote: work.wrote,
            again: again.or_else(|| not_ours.then(|| Error::NotOurs(namespace.to_owned()))),
        })
    }

    async fn bring_children(
        &self,
        work: &mut Work<'_>,
        user: &KiteUser,
        valid: &ValidUser,
        platform: &ValidPlatform,
    ) -> Result<Parts, Error> {
        let children = Children::of(valid, platform, &self.vm_account, self.clones);
        let namespace = valid.namespace.as_str();
        let isolation = work.isolation(&children).await?;
        let (quota, hard) = work.quota(namespace, &children).await?;
        let access = work.access(user, valid, Some(&children.vm_binding)).await?;
        let ready = format!("the namespace {namespace} is isolated, limited and this user's");
        Ok(Parts {
            namespace: Part::good("Ready", ready),
            isolation,
            quota,
            access,
            hard,
        })
    }

    /// In a namespace that another user rules there are only one's own rights to see to.
    async fn bring_access(
        &self,
        work: &mut Work<'_>,
        user: &KiteUser,
        valid: &ValidUser,
        (bound, platform): (&KiteUser, &ValidPlatform),
    ) -> Result<Parts, Error> {
        let (isolation, quota, hard) = self.look_at(bound, platform);
        let access = work.access(user, valid, None).await?;
        let (namespace, name) = (&valid.namespace, bound.name_any());
        let words =
            format!("the namespace {namespace} is bound to KiteUser {name}, whose spec rules it");
        Ok(Parts {
            namespace: Part::good("SharedNamespace", words),
            isolation,
            quota,
            access,
            hard,
        })
    }

    /// How the namespace of another user stands, as far as the caches show.
    fn look_at(&self, bound: &KiteUser, platform: &ValidPlatform) -> (Part, Part, Limits) {
        use kite_render::compare::Compare;
        let name = bound.name_any();
        let Ok(valid) = ValidUser::parse(bound, platform) else {
            let words = format!(
                "the spec of KiteUser {name}, which rules the namespace, cannot be carried out"
            );
            let part = Part::stuck("InvalidSpec", words);
            return (part.clone(), part, Limits::new());
        };
        let children = Children::of(&valid, platform, &self.vm_account, self.clones);
        let stands = children.policies.iter().all(|policy| {
            let live = self.caches.policies.get(&Key::of(policy));
            live.is_some_and(|live| is_bound(&live.metadata) && policy.matches(&live))
        });
        let isolation = if stands {
            Part::good(
                "Applied",
                format!("the network policies of KiteUser {name} are in force"),
            )
        } else {
            let waits = format!("the network policies of KiteUser {name} are not in force yet");
            Part::coming("PoliciesPending", waits)
        };
        let Some(quota) = children.quota else {
            let words = format!("KiteUser {name} has no quota");
            return (isolation, Part::good("NotRequested", words), Limits::new());
        };
        let live = self.caches.quotas.get(&Key::of(&quota));
        let live = live.filter(|live| is_bound(&live.metadata) && quota.matches(live));
        let part = quota_part(live.as_deref());
        let hard = live.and_then(|live| live.spec.as_ref()?.hard.clone());
        (isolation, part, hard.unwrap_or_default())
    }

    /// Tells, wakes those whom it concerns, and says when to come back.
    async fn conclude(&self, user: &Arc<KiteUser>, outcome: Outcome) -> Result<Next, Error> {
        let Outcome {
            parts,
            wrote,
            again,
        } = outcome;
        if !wrote.is_empty() {
            self.wake_siblings(user);
            self.tell_restored(user, &wrote).await;
        }
        let key = Key::of(user.as_ref());
        if parts.awaits_only_quota() {
            if let Some(left) = self.patience.left(&key) {
                return Ok(Next::Within(left));
            }
        } else {
            self.patience.reset(&key);
        }
        self.tell(user, status::of(user, parts, &now())).await?;
        again.map_or(Ok(Next::OnChange), Err)
    }

    /// Wakes the others who share the user's namespace.
    pub(crate) fn wake_siblings(&self, user: &KiteUser) {
        let own = Key::of(user);
        let all = self.siblings.of(&user.spec.namespace);
        for sibling in all.into_iter().filter(|key| *key != own) {
            self.wake(sibling);
        }
    }

    pub(crate) fn wake(&self, key: Key) {
        // The queue ends only with the process.
        let _ = self.waker.send(key);
    }

    pub(crate) fn place(&self, user: &KiteUser) -> Place<'_, KiteUser> {
        Place {
            api: Api::all(self.writer.client().clone()),
            cache: &self.caches.users,
            key: Key::of(user),
        }
    }
}

/// What is to be said of a namespace that cannot be the user's; nothing of one that can.
fn in_the_way(standing: &Standing, user: &KiteUser, namespace: &str) -> Option<Part> {
    match standing {
        Standing::Ours | Standing::Left | Standing::Shared(_) => None,
        Standing::Terminating => Some(Part::coming(
            "NamespaceTerminating",
            format!("the namespace {namespace} is being deleted; it is made anew when it is gone"),
        )),
        Standing::Orphaned { of } => Some(Part::stuck(
            "NamespaceOrphaned",
            format!(
                "the namespace {namespace} belonged to KiteUser {of}, which is gone; to hand it and all that is in it \
                 over to this one: kubectl annotate namespace {namespace} --overwrite {USER_UID}={}",
                user.uid().unwrap_or_default()
            ),
        )),
        Standing::Absent | Standing::Foreign => Some(Part::stuck(
            "NamespaceNotManaged",
            format!(
                "the namespace {namespace} exists and was not made by Kite; it is left untouched. \
                 Remove it, or make a KiteUser with another namespace"
            ),
        )),
    }
}

/// The time, to the second, as conditions have it.
pub(crate) fn now() -> Time {
    let now = Timestamp::now();
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}
