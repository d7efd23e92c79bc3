//! The end of a user (rules U-10, U-11): what is taken away, and in which order
//! that is safe.
//!
//! Tenants lose their rights first, then the quota is closed, so that no machine
//! can come; only then the server itself is asked whether one is left. Isolation
//! goes when nothing can run and nothing can start, or else it stays until the
//! namespace goes, which is kite-namespace's matter. The finalizer never waits
//! for the namespace.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use kite_api::KiteUser;
use kite_api::labels::USER_FINALIZER;
use kite_render::user::{LIMIT_RANGE, QUOTA, VM_SECRETS_BINDING, closing_quota, network_policies};
use kite_render::validate::{DnsLabel, Uid, UserOwner, ValidUser};
use kite_runtime::apply::WriteError;
use kite_runtime::{Key, Next, Refusal};
use kube::ResourceExt;

use crate::apply::Work;
use crate::observe::{NamespaceMeta, look_for_machines, other_users};
use crate::plan::{Standing, bare, is_taken_in, judge, namespace_of};
use crate::reconcile::{Error, Reconciler};
use crate::status::Part;

/// Whether the quota lets no machine come any more.
enum Closing {
    /// The server enforces it.
    Done,
    /// The server has not taken it in yet.
    Waiting,
    /// It cannot be closed: its name is taken by a foreign object.
    Impossible(WriteError),
}

impl Reconciler {
    /// Takes away what was made for a user that goes, as far as that is safe.
    pub(crate) async fn retire(&self, user: &Arc<KiteUser>) -> Result<Next, Error> {
        if !user.finalizers().iter().any(|f| f == USER_FINALIZER) {
            return Ok(Next::OnChange);
        }
        if self.caches.removal_held(Timestamp::now()) {
            let part = Part::stuck(
                "RemovalHeld",
                "the kind KiteUser itself is being removed, which would take every user away; nothing is \
                 removed until its CustomResourceDefinition carries the annotation \
                 kite.dev/acknowledge-deletion with the time of now, for instance \
                 kubectl annotate crd kiteusers.kite.dev kite.dev/acknowledge-deletion=$(date -u +%FT%TZ)",
            );
            return self.tell_going(user, &part, Next::OnChange).await;
        }
        let namespace = self
            .caches
            .namespaces
            .get(&Key::cluster(&user.spec.namespace));
        let meta = namespace.as_ref().map(|n| &n.metadata);
        let by_uid = |uid: &str| self.caches.user_of(uid);
        let standing = judge(meta, user, by_uid);
        let mut work = Work::new(&self.writer, &self.caches);
        if !matches!(standing, Standing::Terminating) {
            work.remove_tenants(user).await?;
        }
        if let (Standing::Ours, Some(namespace)) = (standing, namespace)
            && let Some(next) = self.let_go(&mut work, user, &namespace).await?
        {
            return Ok(next);
        }
        self.patience.reset(&Key::of(user.as_ref()));
        let place = self.place(user);
        self.writer
            .remove_finalizer(&place, user.as_ref(), USER_FINALIZER)
            .await?;
        self.wake_siblings(user);
        Ok(Next::OnChange)
    }

    /// Lets go of the user's own namespace. Nothing is returned when all of it is done.
    async fn let_go(
        &self,
        work: &mut Work<'_>,
        user: &Arc<KiteUser>,
        namespace: &NamespaceMeta,
    ) -> Result<Option<Next>, Error> {
        // Both parse: the namespace was bound by them.
        let (Ok(owner), Ok(name)) = (UserOwner::of(user), DnsLabel::parse(&user.spec.namespace))
        else {
            return Ok(None);
        };
        let platform = self.platform();
        let valid = ValidUser::parse(user, &platform).unwrap_or_else(|_| bare(owner, name));
        let shared = self.is_shared(user);
        let mut closing = Closing::Waiting;
        if !shared {
            closing = self.close(work, &valid).await?;
            if matches!(closing, Closing::Waiting) {
                let part = Part::coming(
                    "ClosingQuota",
                    format!("waiting for the server to take in that {QUOTA} lets no machine start"),
                );
                return self.tell_going(user, &part, Next::OnChange).await.map(Some);
            }
        }
        let uid = valid.owner.uid.as_str();
        let others = other_users(self.writer.client(), valid.namespace.as_str(), uid).await?;
        if let Some(heir) = others.first() {
            self.hand_over(work, user, namespace, heir).await?;
            return Ok(None);
        }
        if shared {
            // The cache still showed another user; by now it shows what the server does.
            return Ok(Some(Next::Within(std::time::Duration::from_millis(200))));
        }
        self.take_away(work, user, &valid, closing).await?;
        Ok(None)
    }

    /// Whether another user of the namespace is known.
    fn is_shared(&self, user: &KiteUser) -> bool {
        let others = self.siblings.of(&user.spec.namespace);
        others.into_iter().any(|key| {
            let other = self.caches.users.get(&key);
            other.is_some_and(|o| {
                o.metadata.uid != user.metadata.uid && o.metadata.deletion_timestamp.is_none()
            })
        })
    }

    /// Closes the quota, so that no machine can come between our look and what follows it.
    async fn close(&self, work: &mut Work<'_>, valid: &ValidUser) -> Result<Closing, Error> {
        let platform = self.platform();
        let closing = closing_quota(valid, &platform, self.clones);
        let caches = &self.caches;
        if caches.quotas.get(&Key::of(&closing)).is_none()
            && !work.stands(&network_policies(valid, &platform)).await?
        {
            // All is taken away already, perhaps by another replica: nothing is made for that anew.
            return Ok(Closing::Done);
        }
        match work.bring(&caches.quotas, &closing).await {
            Ok(live) if is_taken_in(&live) => Ok(Closing::Done),
            Ok(_) => Ok(Closing::Waiting),
            Err(error @ WriteError::NameConflict { .. }) => Ok(Closing::Impossible(error)),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes isolation, quota and kite-vm's rights, unless something may still run.
    async fn take_away(
        &self,
        work: &mut Work<'_>,
        user: &KiteUser,
        valid: &ValidUser,
        closing: Closing,
    ) -> Result<(), Error> {
        let namespace = valid.namespace.as_str();
        let kept = match closing {
            Closing::Impossible(error) => Some(error.to_string()),
            Closing::Done | Closing::Waiting => {
                let left = look_for_machines(self.writer.client(), namespace).await?;
                left.map(|left| left.to_string())
            }
        };
        if let Some(why) = kept {
            let note = format!(
                "isolation and quota stay in the namespace {namespace} until it is removed: {why}"
            );
            self.events
                .normal(user, "IsolationKept", "Remove", note)
                .await;
            return Ok(());
        }
        let caches = &self.caches;
        for policy in network_policies(valid, &self.platform()) {
            work.remove(&caches.policies, Key::of(&policy)).await?;
        }
        let key = |name: &str| Key::new(namespace, name);
        work.remove(&caches.bindings, key(VM_SECRETS_BINDING))
            .await?;
        work.remove(&caches.limit_ranges, key(LIMIT_RANGE)).await?;
        // Last: while it stands closed no machine can come, also if this process ends in between.
        work.remove(&caches.quotas, key(QUOTA)).await?;
        Ok(())
    }

    /// Binds the namespace to another user of it, whose own pass then brings the rest up to date.
    /// Until then the isolation stands as it is.
    async fn hand_over(
        &self,
        work: &mut Work<'_>,
        user: &KiteUser,
        namespace: &NamespaceMeta,
        heir: &ObjectMeta,
    ) -> Result<(), Error> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let owner = DnsLabel::parse(&text(&heir.name))
            .ok()
            .zip(Uid::parse(&text(&heir.uid)).ok());
        let (Some((name, uid)), Ok(space)) = (owner, DnsLabel::parse(&user.spec.namespace)) else {
            return Ok(());
        };
        let note = format!("the namespace {space} is handed over to KiteUser {name}");
        let wake = Key::cluster(name.as_str());
        let wanted = namespace_of(&UserOwner { name, uid }, &space);
        match work.rebind_namespace(namespace, &wanted).await {
            // A namespace that is gone needs no owner.
            Err(error) if error.refusal() == Some(Refusal::NotFound) => return Ok(()),
            done => done?,
        }
        self.events.normal(user, "HandedOver", "Bind", note).await;
        self.wake(wake);
        Ok(())
    }
}
