//! How the six learn what there is already, from a server that streams lists and from one that does not.

use std::collections::BTreeSet;

use kite_testkit::audit::Request;
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::tenant::Tenant;
use kite_testkit::{Cluster, ClusterOptions, Options};
use serde_json::json;

// C-5, C-14: 1.33 streams no lists by default, and a later server can be told not to
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_streams_no_lists_is_read_in_pages() {
    let (refused, pages) = lists(&["--feature-gates=WatchList=false"]).await;
    assert!(
        CONTROLLERS
            .iter()
            .all(|c| refused.iter().any(|(by, _)| by == c))
    );
    assert_eq!(refused, pages);
}

// C-5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_streams_lists_is_asked_for_no_pages() {
    let (refused, pages) = lists(&[]).await;
    assert!(
        refused.is_empty() && pages.is_empty(),
        "{refused:?} {pages:?}"
    );
}

type Lists = BTreeSet<(String, String)>;

/// Which controllers were refused a streamed list of which kind, and of what they read pages while
/// all six started and a machine was made.
async fn lists(server: &[&str]) -> (Lists, Lists) {
    let control_plane = Options {
        apiserver_args: server.iter().map(|&arg| arg.to_owned()).collect(),
        ..Options::default()
    };
    let options = ClusterOptions {
        control_plane,
        ..ClusterOptions::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let tenant = Tenant::new(&cluster, "reader").await;
    tenant.create().await;
    tenant.machine("web", json!({})).await;
    tenant.ready("web").await;
    let log = cluster.control_plane.audit().unwrap();
    log.settled_mark(&tenant.client).await.unwrap();
    let requests = log.all().unwrap();
    let of = |wanted: fn(&Request) -> bool| -> Lists {
        let wanted = requests
            .iter()
            .filter(|r| wanted(r) && r.namespace.is_empty());
        let by = |r: &Request| CONTROLLERS.into_iter().find(|c| r.is_by(c));
        wanted
            .filter_map(|r| Some((by(r)?.to_owned(), r.resource.clone())))
            .collect()
    };
    (
        of(|r| r.streams_list() && r.code == 422),
        of(|r| r.verb == "list" && r.code == 200),
    )
}
