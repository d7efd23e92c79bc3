//! The one user that really lives, and what belongs to it in the store.
//!
//! It knows of no kind in particular: what names the user is the user's.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use kite_api::{KiteUser, KiteVirtualMachine, condition};
use kite_testkit::Cluster;
use kite_testkit::place::is_ready;
use kite_testkit::wait::{wait_for, wait_until};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::load::{self, Name};
use crate::store::{Entry, Store};

/// Its name, which occurs nowhere else.
const USER: &str = "settled-original";

/// A life at speed 1 takes a minute and a half; many machines at a time take longer.
const LIMIT: Duration = Duration::from_mins(10);

/// Longer than Kite holds back a status and than Kubernetes takes to count a quota.
const QUIET: Duration = Duration::from_secs(5);

/// Of each user's quota for each of its machines: a little more than they take.
const CPU: usize = 2;
const MEMORY: usize = 2;
const STORAGE: usize = 4;

/// The name of a user's machine.
pub(super) fn machine_name(number: usize) -> String {
    format!("m{number:02}")
}

/// A user whose machines all run.
pub(super) struct Original {
    machines: usize,
}

impl Original {
    /// Makes it, and waits until it and its machines are Ready.
    pub(super) async fn make(cluster: &Cluster, machines: usize) -> Result<Self> {
        let client = cluster.client().await;
        let users: Api<KiteUser> = Api::all(client.clone());
        users
            .create(&PostParams::default(), &user(machines)?)
            .await?;
        let ready = |user: &KiteUser| {
            let status = user.status.as_ref();
            status.is_some_and(|s| condition::is_true(&s.conditions, condition::READY))
        };
        wait_until(&users, USER, LIMIT, ready).await?;
        let names = (0..machines).map(|number| Name {
            namespace: USER.to_owned(),
            name: machine_name(number),
        });
        let names: Vec<Name> = names.collect();
        load::machines(&client, &names, |_| ()).await?;
        let original = Self { machines };
        original.all_ready(&client).await?;
        Ok(original)
    }

    async fn all_ready(&self, client: &Client) -> Result<()> {
        let api: Api<KiteVirtualMachine> = Api::namespaced(client.clone(), USER);
        for number in 0..self.machines {
            let ready =
                |machine: &Option<KiteVirtualMachine>| machine.as_ref().is_some_and(is_ready);
            wait_for(&api, &machine_name(number), LIMIT, ready).await?;
        }
        Ok(())
    }

    /// Its name, and that of its namespace.
    #[expect(clippy::unused_self, reason = "there is no name without an original")]
    pub(super) fn user(&self) -> &'static str {
        USER
    }

    /// Waits until nothing of it changes any more and nothing of it is going away.
    pub(super) async fn come_to_rest(&self, store: &Store) -> Result<()> {
        let deadline = Instant::now() + LIMIT;
        let mut before = Vec::new();
        loop {
            let now = self.own(store).await?;
            if now == before && !now.iter().any(is_going) {
                return Ok(());
            }
            if Instant::now() > deadline {
                let going = now.iter().find(|entry| is_going(entry));
                let going = going.map_or("nothing is going", |entry| &entry.key);
                bail!("the original does not come to rest; deleted and still there: {going}");
            }
            before = now;
            sleep(QUIET).await;
        }
    }

    /// What belongs to it. Events belong to nobody.
    pub(super) async fn own(&self, store: &Store) -> Result<Vec<Entry>> {
        let name = self.user().as_bytes();
        let names_it = |text: &[u8]| text.windows(name.len()).any(|part| part == name);
        let own = |entry: &Entry| {
            !entry.key.starts_with("/registry/events/")
                && (names_it(entry.key.as_bytes()) || names_it(&entry.value))
        };
        let all = store.under("/registry/").await?;
        Ok(all.into_iter().filter(own).collect())
    }
}

fn is_going(entry: &Entry) -> bool {
    let object: Value = serde_json::from_slice(&entry.value).unwrap_or_default();
    object.pointer("/metadata/deletionTimestamp").is_some()
}

fn user(machines: usize) -> Result<KiteUser> {
    let user = json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KiteUser", "metadata": {"name": USER},
        "spec": {
            "namespace": USER,
            "quota": {
                "cpu": CPU * machines,
                "memory": format!("{}Gi", MEMORY * machines),
                "storage": format!("{}Gi", STORAGE * machines),
                "virtualMachines": machines,
            },
            "subjects": [{"kind": "User", "name": format!("{USER}@example.org")}],
        },
    });
    serde_json::from_value(user).context("a KiteUser")
}
