//! Where a life stands: its objects without what differs between any two
//! lives, and what was made and deleted on the way.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kite_testkit::audit::Mark;
use kite_testkit::snapshot::{CLUSTER_WIDE, NAMESPACED, list, plain};
use kube::{Api, ResourceExt as _};

use crate::lives::{Kind, Lives};
use crate::world::World;

/// The objects of one life, by kind and name.
pub(crate) type State = BTreeMap<String, String>;

/// How often each object was made and deleted in one life, by Kite.
pub(crate) type Made = BTreeMap<String, usize>;

/// Where all lives stand.
pub(crate) async fn of(world: &World, lives: &Lives) -> BTreeMap<String, State> {
    let mut states: BTreeMap<String, State> = lives
        .names
        .iter()
        .map(|name| (name.clone(), State::new()))
        .collect();
    for kind in NAMESPACED.iter().chain(&CLUSTER_WIDE) {
        // The machines' own user and namespace are not part of their lives, but have no life's name either.
        for object in list(&world.client, kind, None).await {
            let (space, called) = (object.namespace().unwrap_or_default(), object.name_any());
            let is_of = |name: &&String| lives.holds(&space, &called, name);
            if let Some(name) = lives.names.iter().find(is_of) {
                let masked = |text: &str| {
                    let text = text.replace(name.as_str(), "LIFE");
                    text.replace(&lives.tenant, "TENANT")
                };
                let key = masked(&format!("{} {called}", kind.2));
                let text = without_what_must_be_watched(&masked(&plain(kind.2, object, name)));
                if let Some(state) = states.get_mut(name) {
                    state.insert(key, text);
                }
            }
        }
    }
    states
}

/// Which guest it was that stopped is known only to a process that saw it stop: KubeVirt keeps
/// nothing of a guest that is gone.
fn without_what_must_be_watched(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.contains("instanceUID\": "));
    lines.collect::<Vec<_>>().join("\n")
}

/// What Kite made and deleted in each life since a mark.
pub(crate) async fn made(world: &World, lives: &Lives, mark: Mark) -> BTreeMap<String, Made> {
    let audit = world.cluster.control_plane.audit().unwrap();
    audit.settled_mark(&world.client).await.unwrap();
    let mut made: BTreeMap<String, Made> = BTreeMap::new();
    for request in audit.since(mark).unwrap() {
        let by_kite = request
            .user
            .starts_with("system:serviceaccount:kite-system:kite-");
        let did = match (request.verb.as_str(), request.code) {
            ("create", 201) => "made",
            ("delete", 200 | 202) => "deleted",
            _ => continue,
        };
        if !by_kite || request.is_event() || request.is_lease() {
            continue;
        }
        let is_of = |name: &&String| lives.holds(&request.namespace, &request.name, name);
        if let Some(name) = lives.names.iter().find(is_of) {
            let object = request.name.replace(name.as_str(), "LIFE");
            let key = format!("{did} {} {object}", request.target());
            *made
                .entry(name.clone())
                .or_default()
                .entry(key)
                .or_default() += 1;
        }
    }
    made
}

/// CR6, F-12: the key that the guest is given is the public half of the one that is stored.
pub(crate) async fn keys_belong_together(world: &World, lives: &Lives) {
    if lives.kind == Kind::Users {
        return;
    }
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &lives.tenant);
    for name in &lives.names {
        let key = secrets.get(&format!("{name}-ssh-key")).await.unwrap();
        let text = |secret: &Secret, field: &str| {
            let data = secret.data.as_ref().unwrap();
            String::from_utf8(data[field].0.clone()).unwrap()
        };
        let private = ssh_key::PrivateKey::from_openssh(text(&key, "ssh-privatekey")).unwrap();
        let public = private.public_key().to_openssh().unwrap();
        let public = public.split_whitespace().nth(1).unwrap();
        let login = secrets.get(&format!("{name}-cloud-init")).await.unwrap();
        let login = text(&login, "userdata");
        assert!(login.contains(public), "{name}: {public} is not in {login}");
    }
}
