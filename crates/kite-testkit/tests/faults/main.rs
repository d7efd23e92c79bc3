//! Faults between one controller and the API server, made to happen exactly:
//! first the layer that makes them, then what Kite does.

mod layer;

use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::{Cluster, ClusterOptions};

/// The cluster that these scenarios share; each starts the controllers that it needs.
async fn cluster() -> &'static Cluster {
    static SHARED: tokio::sync::OnceCell<Result<Cluster, String>> =
        tokio::sync::OnceCell::const_new();
    let started = SHARED
        .get_or_init(|| async {
            let options = ClusterOptions {
                without: CONTROLLERS.to_vec(),
                speed: 30.0,
                ..ClusterOptions::default()
            };
            let started = Cluster::start(options).await;
            started.map_err(|error| format!("{error:#}"))
        })
        .await;
    match started {
        Ok(cluster) => cluster,
        Err(error) => panic!("no cluster: {error}"),
    }
}
