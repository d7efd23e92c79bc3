//! One cluster, with each controller behind a fault layer of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::fault_layer::FaultLayer;
use kite_testkit::{Cluster, ClusterOptions, install};
use kube::Client;
use serde_json::json;

/// Nothing is held back for longer than two seconds, so after this nothing more comes.
const QUIET: Duration = Duration::from_secs(3);

pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) client: Client,
    pub(crate) layers: BTreeMap<&'static str, FaultLayer>,
}

/// Flags of all: a request that waits at its crash point is not given up, and delays no other.
const FLAGS: [&str; 3] = [
    "--request-timeout=5m",
    "--pass-timeout=5m",
    "--concurrency=512",
];

impl World {
    pub(crate) async fn start() -> Self {
        let options = ClusterOptions {
            without: CONTROLLERS.to_vec(),
            speed: 40.0,
            args: vec![
                ("kite-namespace", "--grace-period=1s".to_owned()),
                ("kite-namespace", "--brake-share=100".to_owned()),
            ],
            ..ClusterOptions::default()
        };
        let cluster = Cluster::start(options).await.unwrap();
        let client = cluster.client().await;
        let mut layers = BTreeMap::new();
        for name in CONTROLLERS {
            let options = cluster.kite_options(name, name, &FLAGS);
            let layer = FaultLayer::start(&options.kubeconfig).await.unwrap();
            layer.run(&cluster.control_plane, options).await.unwrap();
            layers.insert(name, layer);
        }
        let platform = json!({
            "apiVersion": "kite.dev/v1alpha1", "kind": "KitePlatform", "metadata": {"name": "default"},
            "spec": {"baseDomain": "vms.example.org", "limits": {"clonesPerImage": 100}},
        });
        install::apply(&client, &platform.to_string())
            .await
            .unwrap();
        Self {
            cluster,
            client,
            layers,
        }
    }

    /// Kills a process and starts it again; it leads at once, since it is called as before.
    pub(crate) async fn restart(&self, process: &str) {
        let options = self.cluster.kite_options(process, process, &FLAGS);
        let layer = &self.layers[process];
        layer
            .run(&self.cluster.control_plane, options)
            .await
            .unwrap();
    }

    /// Waits until no process asks for anything but its watches and its Lease.
    pub(crate) async fn quiet(&self) {
        loop {
            let age = |layer: &FaultLayer| {
                let seen = layer.seen();
                let work = |s: &&kite_testkit::fault_layer::Seen| {
                    !s.asked.is_upkeep() && s.asked.verb != "watch"
                };
                let last = seen.iter().rev().find(work).map(|s| s.at);
                layer.now().saturating_sub(last.unwrap_or_default())
            };
            let youngest = self.layers.values().map(age).min().unwrap_or_default();
            if youngest >= QUIET {
                return;
            }
            tokio::time::sleep(QUIET.saturating_sub(youngest)).await;
        }
    }
}
