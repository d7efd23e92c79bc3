//! A cluster where every answer to a write is in the audit log, and users with a machine each to
//! whom the same is done at once.

use futures::future::join_all;
use kite_api::machine::PowerState;
use kite_testkit::audit::Mark;
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::counted::{Counted, quiet};
use kite_testkit::tenant::{Place, Tenant};
use kite_testkit::{Cluster, ClusterOptions, Options, install};
use kube::Client;
use serde_json::json;
use std::time::Duration;

/// One of so many users has a second machine, which has a host name.
const EACH_SITE: usize = 4;

/// The machine that everything is done to, and the one with a host name.
pub(crate) const WEB: &str = "web";
pub(crate) const SITE: &str = "site";

/// The cluster, with all six controllers.
pub(crate) struct Ground {
    pub(crate) cluster: Cluster,
    pub(crate) client: Client,
    /// Holds the audit policy, which the API server may read again.
    _folder: tempfile::TempDir,
}

impl Ground {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("audit-policy.json");
        // The versions that writes led to are told with the answers.
        let bodies = json!({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
            "omitManagedFields": true,
            "rules": [
                {"level": "Metadata", "resources": [
                    {"group": "events.k8s.io"},
                    {"group": "coordination.k8s.io"},
                    {"group": "", "resources": ["events", "serviceaccounts/token"]},
                ]},
                {"level": "RequestResponse", "verbs": ["create", "update", "patch"]},
                {"level": "Metadata"},
            ],
        });
        std::fs::write(&policy, bodies.to_string()).unwrap();
        let cluster = Cluster::start(ClusterOptions {
            args: vec![
                // All users go at once, and their namespaces with them.
                ("kite-namespace", "--grace-period=1s".to_owned()),
                ("kite-namespace", "--brake-share=100".to_owned()),
                ("kite-namespace", "--brake-least=1000".to_owned()),
            ],
            control_plane: Options {
                apiserver_args: vec![format!("--audit-policy-file={}", policy.display())],
                ..Options::default()
            },
            ..ClusterOptions::default()
        })
        .await
        .unwrap();
        let client = cluster.client().await;
        let platform = json!({
            "apiVersion": "kite.dev/v1alpha1", "kind": "KitePlatform", "metadata": {"name": "default"},
            "spec": {
                "baseDomain": "vms.example.org", "ingress": {"tls": "Wildcard"},
                // More than there are machines: one that waits for its turn says so (V-14).
                "limits": {"clonesPerImage": 100},
            },
        });
        install::apply(&client, &platform.to_string())
            .await
            .unwrap();
        // The brake holds a cluster whose last user goes (rule N-6).
        Tenant::new(&cluster, "neighbour").await.create().await;
        // The server looks at new kinds again some seconds after they came, and cuts their watches.
        quiet(&cluster).await;
        Self {
            cluster,
            client,
            _folder: folder,
        }
    }

    pub(crate) async fn mark(&self) -> Mark {
        let audit = self.cluster.control_plane.audit().unwrap();
        audit.settled_mark(&self.client).await.unwrap()
    }

    /// What Kite asks of the server while something is done and until it is at rest again.
    pub(crate) async fn counted(&self, work: impl Future<Output = ()>) -> Counted {
        let start = self.mark().await;
        work.await;
        quiet(&self.cluster).await;
        Counted::since(&self.cluster, &self.client, start).await
    }

    /// Ends all six and starts them again.
    pub(crate) async fn restart(&self) {
        for name in CONTROLLERS {
            let process = self.cluster.take(name);
            let status = process.terminate(Duration::from_secs(25)).await;
            assert!(status.is_some_and(|s| s.success()), "{name}: {status:?}");
        }
        for name in CONTROLLERS {
            self.cluster.run(name, name, &[]).await.unwrap();
        }
    }

    /// So many users that are yet to be made.
    pub(crate) fn users(&self, number: usize) -> Users<'_> {
        let tenant = |i: usize| {
            let name = format!("of-{number}-{i}");
            Tenant {
                cluster: &self.cluster,
                place: Place {
                    client: self.client.clone(),
                    namespace: name.clone(),
                },
                name,
            }
        };
        Users {
            all: (0..number).map(tenant).collect(),
        }
    }
}

/// Users, each with a machine, to all of whom the same is done at once.
pub(crate) struct Users<'a> {
    all: Vec<Tenant<'a>>,
}

impl<'a> Users<'a> {
    /// How many they are.
    pub(crate) fn number(&self) -> usize {
        self.all.len()
    }

    /// How many of them have a machine with a host name.
    pub(crate) fn sites(&self) -> usize {
        self.all.len().div_ceil(EACH_SITE)
    }

    /// Does something to each at once.
    pub(crate) async fn each(&self, work: impl AsyncFn(&Tenant<'a>)) {
        join_all(self.all.iter().map(|tenant| work(tenant))).await;
    }

    /// Does something to each that has a machine with a host name, at once.
    async fn each_site(&self, work: impl AsyncFn(&Tenant<'a>)) {
        join_all(
            self.all
                .iter()
                .take(self.sites())
                .map(|tenant| work(tenant)),
        )
        .await;
    }

    /// Makes them and waits until their namespaces are safe to use.
    pub(crate) async fn create(&self) {
        self.each(async |tenant| {
            tenant.create().await;
        })
        .await;
    }

    /// Deletes them and waits until their namespaces are gone.
    pub(crate) async fn delete(&self) {
        self.each(async |tenant| {
            tenant.delete_user().await;
            tenant.namespace_gone().await;
        })
        .await;
    }

    /// Makes all machines at once and waits until they run.
    pub(crate) async fn make_machines(&self) {
        let web = self.each(async |tenant| {
            tenant.machine(WEB, json!({})).await;
            tenant.ready(WEB).await;
        });
        let site = self.each_site(async |tenant| {
            let domain = json!({"domainPrefix": format!("site-{}", tenant.name)});
            tenant.machine(SITE, domain).await;
            tenant.ready(SITE).await;
        });
        tokio::join!(web, site);
    }

    /// Switches the machines without a host name.
    pub(crate) async fn switch(&self, power: PowerState) {
        self.each(async |tenant| {
            tenant.switch(WEB, power).await;
        })
        .await;
    }

    /// Takes all machines away by their specification.
    pub(crate) async fn delete_machines(&self) {
        let delete = async |tenant: &Tenant<'_>, name: &str| {
            let going = json!({"spec": {"delete": true}});
            tenant
                .edit::<kite_api::KiteVirtualMachine>(name, going)
                .await;
            tenant.machine_gone(name).await;
        };
        let web = self.each(async |tenant| delete(tenant, WEB).await);
        let site = self.each_site(async |tenant| delete(tenant, SITE).await);
        tokio::join!(web, site);
    }
}
