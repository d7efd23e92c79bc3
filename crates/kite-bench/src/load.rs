//! Who makes users and machines: as many at a time as it is told, and it notes when.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kite_api::condition::{self, READY};
use kite_api::{KiteUser, KiteVirtualMachine};
use kite_testkit::cluster::IMAGE;
use kite_testkit::wait::eventually;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

/// How many requests are under way at a time. More do not make a small server faster.
pub const AT_ONCE: usize = 32;

/// How many machines a user has: a small team's worth.
pub const PER_USER: usize = 10;

/// Users that are not ready by then never will be.
const USERS_LIMIT: Duration = Duration::from_mins(20);

/// Namespace and name of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    /// Namespace, which is the user's name too.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// A machine that was made.
#[derive(Clone, Debug)]
pub struct Made {
    /// Which.
    pub name: Name,
    /// Its UID.
    pub uid: String,
    /// When the server had answered.
    pub at: Instant,
}

/// The names of `machines` machines, spread over users.
pub fn names(machines: usize) -> Vec<Name> {
    let name = |number: usize| Name {
        namespace: user_name(number / PER_USER),
        name: format!("m{:02}", number % PER_USER),
    };
    (0..machines).map(name).collect()
}

/// The name of a user.
pub fn user_name(number: usize) -> String {
    format!("user-{number:05}")
}

/// How many users `machines` machines belong to.
pub fn users_of(machines: usize) -> usize {
    machines.div_ceil(PER_USER)
}

/// Makes the first `users` users and waits until each is ready.
pub async fn users(client: &Client, users: usize) -> Result<Duration> {
    let names: Vec<String> = (0..users).map(user_name).collect();
    users_named(client, &names).await
}

/// Makes users and waits until each is ready.
pub async fn users_named(client: &Client, names: &[String]) -> Result<Duration> {
    let began = Instant::now();
    let api: Api<KiteUser> = Api::all(client.clone());
    stream::iter(names.iter().map(Ok))
        .try_for_each_concurrent(AT_ONCE, |name| make_user(&api, name))
        .await?;
    eventually("every user Ready", USERS_LIMIT, async || {
        let all = api.list(&ListParams::default()).await.ok()?;
        let ready = |user: &&KiteUser| {
            let status = user.status.as_ref();
            status.is_some_and(|status| condition::is_true(&status.conditions, READY))
        };
        let ready: HashSet<String> = all.iter().filter(ready).map(KiteUser::name_any).collect();
        names.iter().all(|name| ready.contains(name)).then_some(())
    })
    .await?;
    Ok(began.elapsed())
}

/// Makes one user, with room for all machines that any scenario makes: the quota is checked at
/// each create, and is not to be what a scenario waits for.
async fn make_user(api: &Api<KiteUser>, name: &str) -> Result<()> {
    let user: KiteUser = serde_json::from_value(json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KiteUser", "metadata": {"name": name},
        "spec": {
            "namespace": name,
            "quota": {"cpu": 4000, "memory": "8Ti", "storage": "16Ti", "virtualMachines": 4000},
            "subjects": [{"kind": "User", "name": format!("{name}@example.org")}],
        },
    }))?;
    let made = api.create(&PostParams::default(), &user).await;
    made.with_context(|| format!("cannot make the user {name}"))?;
    Ok(())
}

/// Makes one machine.
pub async fn machine(client: &Client, name: &Name) -> Result<Made> {
    let api: Api<KiteVirtualMachine> = Api::namespaced(client.clone(), &name.namespace);
    let object: KiteVirtualMachine = serde_json::from_value(json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
        "metadata": {"name": name.name, "namespace": name.namespace},
        "spec": {"cpu": 1, "memory": "1Gi", "disk": "2Gi", "image": IMAGE},
    }))?;
    let made = loop {
        match api.create(&PostParams::default(), &object).await {
            // The server counts a quota by an update that others' creates can overtake.
            Err(kube::Error::Api(status)) if status.is_conflict() => {}
            made => break made,
        }
    };
    let made = made.with_context(|| format!("cannot make {}/{}", name.namespace, name.name))?;
    Ok(Made {
        name: name.clone(),
        uid: made.uid().unwrap_or_default(),
        at: Instant::now(),
    })
}

/// Makes machines as fast as the server takes them; `then` is told of each at once.
pub async fn machines(
    client: &Client,
    names: &[Name],
    then: impl Fn(&Made),
) -> Result<HashMap<Name, Made>> {
    let then = &then;
    stream::iter(names)
        .map(|name| async move {
            let made = machine(client, name).await?;
            then(&made);
            Ok((made.name.clone(), made))
        })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

/// Changes the specifications of machines, all at once, and returns when each was changed.
pub async fn change(
    client: &Client,
    names: &[Name],
    spec: &Value,
) -> Result<HashMap<Name, Instant>> {
    let patch = Arc::new(Patch::Merge(json!({"spec": spec})));
    stream::iter(names)
        .map(|name| {
            let patch = Arc::clone(&patch);
            async move {
                let api: Api<KiteVirtualMachine> = Api::namespaced(client.clone(), &name.namespace);
                let at = Instant::now();
                match api
                    .patch(&name.name, &PatchParams::default(), &*patch)
                    .await
                {
                    Ok(_) => Ok((name.clone(), at)),
                    Err(error) => {
                        bail!("cannot change {}/{}: {error}", name.namespace, name.name)
                    }
                }
            }
        })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}
