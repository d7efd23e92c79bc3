//! Leader election over a `Lease`, after client-go's model.
//!
//! Leadership is an optimisation, not a lock: Kubernetes gives no fencing token,
//! so every write of Kite is safe with two leaders. What is promised here is
//! that there usually is one, that it knows until when it is one, and that a
//! clean stop hands over at once.
//!
//! * `decide` is pure: no clock, no I/O.
//! * A foreign lease expires by this process's monotonic clock, counted from when
//!   its current version was first seen, never by the times written in it.
//! * Every write carries the resourceVersion that was read; 409 means "look again".
//! * Leadership is published as an instant, counted from before the renewal was sent.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube::{Api, Client, ResourceExt};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cache::Key;
use crate::errors::{Refusal, jittered, refusal, words};
pub use crate::leadership::Leadership;
use crate::settings::Settings;

/// What to do about a lease as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is free, expired, or ours already: write it.
    Acquire,
    /// Somebody holds it at least until then.
    Wait(Instant),
}

/// Decides from a lease, and the instant its version was first seen here.
pub fn decide(lease: Option<&LeaseSpec>, me: &str, first_seen: Instant, now: Instant) -> Decision {
    let Some(lease) = lease else {
        return Decision::Acquire;
    };
    let holder = lease.holder_identity.as_deref().unwrap_or_default();
    if holder.is_empty() || holder == me {
        return Decision::Acquire;
    }
    let seconds =
        u64::try_from(lease.lease_duration_seconds.unwrap_or_default()).unwrap_or_default();
    let expiry = first_seen + Duration::from_secs(seconds);
    if now >= expiry {
        Decision::Acquire
    } else {
        Decision::Wait(expiry)
    }
}

/// The instant that a version of a lease counts from when it is seen for the first time.
///
/// It was written since we last looked, so at most one pause ago; and no earlier instant is
/// needed for a takeover within lease and retry, nor safe: a leader stops one deadline after
/// its renewal, and deadline and retry together are shorter than the lease (see `Settings::check`).
pub fn counts_from(looked: Option<Instant>, now: Instant, retry: Duration) -> Instant {
    looked
        .zip(now.checked_sub(retry))
        .map_or(now, |(looked, earliest)| looked.max(earliest))
}

/// Why the elector ended.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// It was told to, and has released the lease.
    #[error("released")]
    Released,
    /// Another replica holds the lease.
    #[error("another replica, {0}, holds the lease")]
    Taken(String),
    /// The lease could not be renewed in time.
    #[error("the lease could not be renewed for {deadline:?}: {last}")]
    Expired {
        /// How long was tried.
        deadline: Duration,
        /// The last answer.
        last: String,
    },
}

/// Takes, keeps and releases one Lease.
pub struct Elector {
    api: Api<Lease>,
    name: String,
    me: String,
    duration: Duration,
    interval: Duration,
    deadline: Duration,
    retry: Duration,
    until: watch::Sender<Option<Instant>>,
}

impl Elector {
    /// An elector, and the leadership it will publish.
    pub fn new(client: Client, name: &str, settings: &Settings) -> (Self, Leadership) {
        let (until, receiver) = watch::channel(None);
        let elector = Self {
            api: Api::namespaced(client, &settings.namespace),
            name: name.to_owned(),
            me: settings.identity(),
            duration: settings.lease_duration,
            interval: settings.renew_interval,
            deadline: settings.renew_deadline,
            retry: settings.retry_interval,
            until,
        };
        (elector, Leadership { until: receiver })
    }

    /// Runs until `release` turns true or leadership is lost. The process must not outlive this.
    pub async fn run(self, mut release: watch::Receiver<bool>) -> Ended {
        let held = tokio::select! {
            held = self.acquire() => held,
            () = told(&mut release) => return Ended::Released,
        };
        self.keep(held, release).await
    }

    /// Waits for its turn and takes the lease.
    async fn acquire(&self) -> Lease {
        let mut first_seen: Option<(Option<String>, Instant)> = None;
        let mut looked = None;
        loop {
            let pause = match self.api.get_opt(&self.name).await {
                Ok(lease) => {
                    let now = Instant::now();
                    let version = lease.as_ref().and_then(ResourceExt::resource_version);
                    let since = match &first_seen {
                        Some((seen, since)) if *seen == version => *since,
                        _ => counts_from(looked, now, self.retry),
                    };
                    first_seen = Some((version, since));
                    looked = Some(now);
                    match decide(
                        lease.as_ref().and_then(|l| l.spec.as_ref()),
                        &self.me,
                        since,
                        now,
                    ) {
                        Decision::Acquire => match self.write(lease, &self.me).await {
                            Ok(held) => {
                                tracing::info!(lease = self.name, holder = self.me, "leading");
                                return held;
                            }
                            Err(error) => self.complain("take", &error),
                        },
                        Decision::Wait(_) => {}
                    }
                    self.retry
                }
                Err(error) => {
                    self.complain("read", &error);
                    self.retry
                }
            };
            tokio::time::sleep(self.jitter(pause)).await;
        }
    }

    /// Renews until told to release or until it cannot.
    async fn keep(&self, mut held: Lease, mut release: watch::Receiver<bool>) -> Ended {
        let mut until = *self.until.borrow();
        loop {
            // Only what was refused is tried again with jitter: a leader renews alone.
            let pause = if until == *self.until.borrow() {
                self.interval
            } else {
                self.jitter(self.retry)
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = told(&mut release) => return self.release(held).await,
            }
            match self.renew(&held).await {
                Ok(renewed) => {
                    held = renewed;
                    until = *self.until.borrow();
                }
                Err(Renewal::Taken(holder)) => return self.lost(Ended::Taken(holder)),
                Err(Renewal::Failed(last)) => {
                    until = None;
                    let expired = self
                        .until
                        .borrow()
                        .is_none_or(|d| Instant::now() + self.retry >= d);
                    if expired {
                        return self.lost(Ended::Expired {
                            deadline: self.deadline,
                            last,
                        });
                    }
                }
            }
        }
    }

    /// One renewal: one write and no read, unless somebody else wrote.
    async fn renew(&self, held: &Lease) -> Result<Lease, Renewal> {
        let error = match self.write(Some(held.clone()), &self.me).await {
            Ok(lease) => return Ok(lease),
            Err(error) => error,
        };
        if !matches!(refusal(&error), Refusal::Conflict | Refusal::NotFound) {
            self.complain("renew", &error);
            return Err(Renewal::Failed(words(&error)));
        }
        // Our own renewal may have been applied although its answer was lost (row LE6),
        // or the Lease was deleted (LE4): only a foreign holder ends the leadership.
        let current = self
            .api
            .get_opt(&self.name)
            .await
            .map_err(|e| Renewal::Failed(words(&e)))?;
        let holder = current
            .as_ref()
            .and_then(|l| l.spec.as_ref()?.holder_identity.clone());
        match holder {
            Some(holder) if holder != self.me && !holder.is_empty() => Err(Renewal::Taken(holder)),
            _ => self
                .write(current, &self.me)
                .await
                .map_err(|e| Renewal::Failed(words(&e))),
        }
    }

    /// Gives the lease back, so that the next replica need not wait.
    async fn release(&self, held: Lease) -> Ended {
        self.until.send_replace(None);
        if let Err(error) = self.write(Some(held), "").await {
            self.complain("release", &error);
        }
        Ended::Released
    }

    fn lost(&self, ended: Ended) -> Ended {
        self.until.send_replace(None);
        ended
    }

    /// Writes the lease for a holder, against the version that was read, and publishes the deadline.
    async fn write(&self, lease: Option<Lease>, holder: &str) -> kube::Result<Lease> {
        let sent = Instant::now();
        let now = MicroTime(Timestamp::now());
        let exists = lease.is_some();
        let mut lease = lease.unwrap_or_else(|| Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                ..ObjectMeta::default()
            },
            spec: None,
        });
        lease.metadata.managed_fields = None;
        let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
        if spec.holder_identity.as_deref() != Some(holder) {
            if !holder.is_empty() {
                spec.lease_transitions =
                    Some(spec.lease_transitions.unwrap_or_default() + i32::from(exists));
                spec.acquire_time = Some(now.clone());
            }
            spec.holder_identity = Some(holder.to_owned());
        }
        spec.renew_time = Some(now);
        // The API server refuses a duration of zero, so a released lease says one second.
        let seconds = if holder.is_empty() {
            1
        } else {
            self.duration.as_secs()
        };
        spec.lease_duration_seconds = i32::try_from(seconds).ok();
        let written = if exists {
            self.api
                .replace(&self.name, &PostParams::default(), &lease)
                .await?
        } else {
            self.api.create(&PostParams::default(), &lease).await?
        };
        if !holder.is_empty() {
            self.until.send_replace(Some(sent + self.deadline));
        }
        Ok(written)
    }

    fn complain(&self, doing: &str, error: &kube::Error) {
        if refusal(error) != Refusal::Conflict {
            tracing::warn!(lease = self.name, error = %words(error), "could not {doing} the lease; it will be tried again");
        }
    }

    /// Spread by the replica's name, so that replicas do not ask in step.
    fn jitter(&self, pause: Duration) -> Duration {
        jittered(pause, &Key::cluster(self.me.as_str()), 1)
    }
}

/// Waits until a flag is up. Its sender lives in the process's main task, which outlives this.
async fn told(flag: &mut watch::Receiver<bool>) {
    let _ = flag.wait_for(|f| *f).await;
}

enum Renewal {
    Taken(String),
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held_by(holder: &str, seconds: i32) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(seconds),
            // LE3: a renewal in the far future or past must not matter.
            renew_time: Some(MicroTime(Timestamp::MAX)),
            ..LeaseSpec::default()
        }
    }

    // LE3, LE11
    #[tokio::test(start_paused = true)]
    async fn a_foreign_lease_expires_by_our_own_clock_and_only_then() {
        let seen = Instant::now();
        let lease = held_by("other", 15);
        let at = |seconds| {
            decide(
                Some(&lease),
                "me",
                seen,
                seen + Duration::from_secs(seconds),
            )
        };
        assert_eq!(at(0), Decision::Wait(seen + Duration::from_secs(15)));
        assert_eq!(at(14), Decision::Wait(seen + Duration::from_secs(15)));
        assert_eq!(at(15), Decision::Acquire);
    }

    // LE11
    #[tokio::test(start_paused = true)]
    async fn a_renewal_counts_from_when_it_cannot_have_been_there_yet_but_never_from_long_ago() {
        let (lease, deadline, retry) = (15, 10, 2);
        let retry = Duration::from_secs(retry);
        tokio::time::advance(Duration::from_secs(100)).await;
        let now = Instant::now();
        assert_eq!(counts_from(None, now, retry), now);
        let looked = now - Duration::from_millis(1600);
        assert_eq!(counts_from(Some(looked), now, retry), looked);
        let long_ago = now - Duration::from_secs(60);
        let since = counts_from(Some(long_ago), now, retry);
        assert_eq!(since, now - retry);
        // A leader that renewed just now has stopped when its lease is taken.
        assert!(now + Duration::from_secs(deadline) < since + Duration::from_secs(lease));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_is_free_or_our_own_is_taken_at_once() {
        let now = Instant::now();
        assert_eq!(decide(None, "me", now, now), Decision::Acquire);
        assert_eq!(
            decide(Some(&held_by("", 1)), "me", now, now),
            Decision::Acquire
        );
        assert_eq!(
            decide(Some(&held_by("me", 15)), "me", now, now),
            Decision::Acquire
        );
    }
}
