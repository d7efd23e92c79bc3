//! The cluster of these tests: users with and without additions, the namespaces
//! around them, and a judge of what lives in it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kite_api::condition::READY;
use kite_api::{KiteUser, condition};
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::netpol::{Connection, End, Judge};
use kite_testkit::tenant::LONG;
use kite_testkit::{Cluster, ClusterOptions, install, wait};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use crate::rows::{Row, Who, rows};

/// The users; three of them have names that begin alike (#72).
pub(crate) const USERS: [&str; 6] = ["alice", "bob", "carol", "a", "a-b", "a-b-c"];

/// Namespaces that no user owns, with a label by which they could be mistaken.
const AROUND: [(&str, &str); 8] = [
    ("ingress-nginx", "ingress-nginx"),
    ("ingress-nginx-copy", "ingress-nginx"),
    ("bastion", "bastion"),
    ("monitoring", "monitoring"),
    ("openshift-dns", "openshift-dns"),
    ("cdi", "cdi"),
    ("alice-copy", "alice"),
    ("bastion-2", "bastion"),
];

static TURN: Mutex<()> = Mutex::const_new(());
static CLUSTER: OnceCell<Cluster> = OnceCell::const_new();

/// Addresses of every pod, one of each family: ranges that are private anyway, as most clusters have.
pub(crate) const PRIVATE_PODS: [&str; 2] = ["10.244.3.7", "fd00:244::3:7"];
/// Ranges that look public, so that only [`full_platform`] closes them.
pub(crate) const PUBLIC_PODS: [&str; 2] = ["11.96.3.7", "2001:db8:42::3:7"];

/// The same for [`other_cluster`].
pub(crate) const OTHER_PODS: [&str; 2] = ["11.43.3.7", "2001:db8:42::3:7"];

pub(crate) struct Scene {
    pub(crate) cluster: &'static Cluster,
    pub(crate) client: Client,
    judge: Judge,
    _turn: MutexGuard<'static, ()>,
}

impl Scene {
    /// The shared cluster with kite-user alone, for one test at a time.
    pub(crate) async fn new() -> Self {
        let turn = TURN.lock().await;
        let cluster = CLUSTER.get_or_init(cluster).await;
        let scene = Self {
            cluster,
            client: cluster.client().await,
            judge: Judge::start().await.unwrap(),
            _turn: turn,
        };
        for user in USERS {
            let network = match user {
                "carol" => Some(additions()),
                _ => None,
            };
            scene.user(user, network).await;
        }
        scene
    }

    /// Makes or changes a user and waits until it is ready.
    pub(crate) async fn user(&self, name: &str, network: Option<Value>) {
        let mut spec = json!({
            "namespace": name,
            "subjects": [{"kind": "User", "name": format!("{name}@example.org")}],
        });
        if let Some(network) = network {
            spec["network"] = network;
        }
        let object = json!({
            "apiVersion": "kite.dev/v1alpha1", "kind": "KiteUser", "metadata": {"name": name}, "spec": spec,
        });
        install::apply(&self.client, &object.to_string())
            .await
            .unwrap();
        let users: Api<KiteUser> = Api::all(self.client.clone());
        let ready = |user: &KiteUser| {
            let conditions = user.status.as_ref().map(|s| s.conditions.as_slice());
            let ready = condition::find(conditions.unwrap_or_default(), READY);
            ready.is_some_and(|c| {
                c.status == "True" && c.observed_generation == user.metadata.generation
            })
        };
        wait::wait_until(&users, name, LONG, ready).await.unwrap();
    }

    /// Sets the platform and waits until every user's policy is another one than before.
    pub(crate) async fn platform(&self, spec: Value) {
        let before = self.policies().await;
        let object = json!({
            "apiVersion": "kite.dev/v1alpha1", "kind": "KitePlatform", "metadata": {"name": "default"}, "spec": spec,
        });
        install::apply(&self.client, &object.to_string())
            .await
            .unwrap();
        for user in USERS {
            let isolation = |p: &&NetworkPolicy| {
                p.namespace().as_deref() == Some(user) && p.name_any() == "kite-isolation"
            };
            let version = before
                .iter()
                .find(isolation)
                .and_then(ResourceExt::resource_version);
            let policies: Api<NetworkPolicy> = Api::namespaced(self.client.clone(), user);
            let changed = |p: &NetworkPolicy| p.resource_version() != version;
            wait::wait_until(&policies, "kite-isolation", LONG, changed)
                .await
                .unwrap();
        }
    }

    /// Every policy of the cluster, as it lives.
    pub(crate) async fn policies(&self) -> Vec<NetworkPolicy> {
        let policies: Api<NetworkPolicy> = Api::all(self.client.clone());
        policies.list(&ListParams::default()).await.unwrap().items
    }

    /// Asks every row of a table, for each family of addresses that both ends have.
    pub(crate) async fn holds(&self, pods: [&str; 2], table: &'static str) {
        let policies = self.policies().await;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let namespaces = namespaces.list(&ListParams::default()).await.unwrap().items;
        let (mut asked, mut traffic) = (Vec::new(), Vec::new());
        let rows = rows(table);
        for row in &rows {
            let connections = connections(row, &namespaces, pods);
            assert!(!connections.is_empty(), "{} asks nothing", row.text);
            asked.extend(connections.iter().map(|_| row));
            traffic.extend(connections);
        }
        let verdicts = self.judge.verdicts(&policies, &traffic).unwrap();
        let answers = asked.iter().zip(&traffic).zip(&verdicts);
        let wrong: Vec<_> = answers
            .filter(|((row, _), verdict)| verdict.allowed() != row.opens)
            .map(|((row, c), verdict)| {
                format!(
                    "{}: {} to {} {} {}: {verdict:?}",
                    row.text, c.from.ip, c.to.ip, c.protocol, c.port
                )
            })
            .collect();
        println!("{} rows, {} connections", rows.len(), traffic.len());
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

fn connections(row: &Row, namespaces: &[Namespace], pods: [&str; 2]) -> Vec<Connection> {
    let mut all = Vec::new();
    let ends = |who| ends(namespaces, who, pods);
    for (from, to) in pairs(&ends(&row.from), &ends(&row.to)) {
        for &protocol in &row.protocols {
            all.extend(row.ports.iter().map(|&port| Connection {
                from: from.clone(),
                to: to.clone(),
                protocol,
                port,
            }));
        }
    }
    all
}

async fn cluster() -> Cluster {
    let options = ClusterOptions {
        stand_ins: false,
        without: CONTROLLERS
            .into_iter()
            .filter(|name| *name != "kite-user")
            .collect(),
        ..ClusterOptions::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let client = cluster.client().await;
    for (name, looks_like) in AROUND {
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {
                "app.kubernetes.io/name": looks_like, "name": looks_like, "kite.dev/looks-like": looks_like,
            }},
        });
        install::apply(&client, &object.to_string()).await.unwrap();
    }
    cluster
}

/// What carol's administrator grants beyond the defaults.
fn additions() -> Value {
    json!({
        "allowFromNamespaces": ["monitoring"],
        "extraEgress": [
            {"cidr": "10.20.0.0/16", "ports": [{"port": 5432}, {"protocol": "UDP", "port": 514}]},
            {"cidr": "fd00:20::/32", "ports": [{"port": 5432}]},
            {"cidr": "192.168.7.7/32"},
        ],
    })
}

/// A dual-stack cluster whose ranges look public, so that only the settings close them.
pub(crate) fn full_platform() -> Value {
    json!({
        "ingress": {"className": "nginx", "controllerNamespace": "ingress-nginx"},
        "network": {
            "clusterRanges": [
                "10.244.0.0/16", "11.96.0.0/12", "198.18.0.0/24",
                "2001:db8:42::/48", "2001:db8:96::/112", "2001:db8:64::/64",
            ],
            "privateRanges": ["198.51.100.0/24", "2001:db8:51::/48"],
            "sshSources": [{"cidr": "203.0.113.0/24"}, {"cidr": "2001:db8:99::/64"}, {"namespace": "bastion"}],
        },
    })
}

/// Other Service ranges, other DNS pods, a node-local cache with an address of IPv6.
pub(crate) fn other_cluster() -> Value {
    json!({
        "ingress": {"controllerNamespace": "ingress-nginx"},
        "network": {
            "clusterRanges": ["11.43.0.0/16", "2001:db8:42::/48"],
            "dnsNamespace": "openshift-dns",
            "dnsLabels": {"dns.operator.openshift.io/daemonset-dns": "default"},
            "nodeLocalDns": "fd00:53::10",
        },
    })
}

/// Every address of one end.
fn ends(namespaces: &[Namespace], who: &Who, pods: [&str; 2]) -> Vec<End> {
    match who {
        Who::Address(addresses) => {
            let end = |ip: &&str| End {
                ip: (*ip).to_owned(),
                ..End::default()
            };
            addresses.iter().map(end).collect()
        }
        Who::Pod(namespace, labels) => {
            let found = namespaces.iter().find(|n| n.name_any() == *namespace);
            let namespace_labels = found.map(|n| n.labels().clone());
            let end = |ip: &str| End {
                ip: ip.to_owned(),
                namespace: Some((*namespace).to_owned()),
                namespace_labels: namespace_labels.clone().expect("the namespace is there"),
                pod_labels: labels
                    .iter()
                    .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                    .collect::<BTreeMap<_, _>>(),
            };
            pods.map(end).into()
        }
    }
}

fn pairs<'a>(from: &'a [End], to: &'a [End]) -> Vec<(&'a End, &'a End)> {
    let six = |end: &End| end.ip.contains(':');
    let alike = |a: &'a End| {
        to.iter()
            .filter(move |b| six(a) == six(b))
            .map(move |b| (a, b))
    };
    from.iter().flat_map(alike).collect()
}
