//! A machine with a host name, and a platform that changes.

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::networking::v1::Ingress;
use kite_api::KiteVirtualMachine;
use kite_testkit::audit::Request;
use kite_testkit::counted::{Counted, quiet};
use kite_testkit::tenant::{LONG, Tenant};
use kite_testkit::{Cluster, ClusterOptions};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::json;

// V-7, V-8, F-10, F-11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_with_a_domain_costs_two_requests_more_and_a_new_platform_reaches_it_once() {
    let cluster = Cluster::start(ClusterOptions::default()).await.unwrap();
    let audit = cluster.control_plane.audit().unwrap();
    let bob = Tenant::new(&cluster, "bob").await;
    let mark = || async { audit.settled_mark(&bob.client).await.unwrap() };
    platform(&bob, "vms.example.org").await;
    bob.create().await;
    quiet(&cluster).await;
    let start = mark().await;
    bob.machine("web", json!({"domainPrefix": "bob-web"})).await;
    bob.ready("web").await;
    quiet(&cluster).await;
    Counted::since(&cluster, &bob.client, start)
        .await
        .at_most("create to Running, with a domain", 25);
    no_key_but_the_machines_own(&bob, "vms.example.org").await;

    bob.machine("plain", json!({"powerState": "Off"})).await;
    bob.ready("plain").await;
    quiet(&cluster).await;
    let start = mark().await;
    platform(&bob, "cloud.example.org").await;
    bob.until("web", LONG, |m: &KiteVirtualMachine| {
        m.status.as_ref().and_then(|s| s.domain.as_deref()) == Some("bob-web.cloud.example.org")
    })
    .await;
    quiet(&cluster).await;
    let moved = Counted::since(&cluster, &bob.client, start).await;
    moved.at_most("a new base domain", 6);
    let written = |name: &str, resource: &str| {
        let of = |r: &&Request| r.namespace == "bob" && r.name == name;
        let of_kind = |r: &&Request| r.resource.ends_with(resource);
        moved.requests.iter().filter(of).filter(of_kind).count()
    };
    assert_eq!(written("web", "ingresses"), 1, "{:#?}", moved.requests);
    assert_eq!(written("plain", ""), 0, "{:#?}", moved.requests);
    no_key_but_the_machines_own(&bob, "cloud.example.org").await;
}

/// A platform whose ingress controller serves a wildcard certificate.
async fn platform(tenant: &Tenant<'_>, domain: &str) {
    let platform = json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KitePlatform", "metadata": {"name": "default"},
        "spec": {"baseDomain": domain, "ingress": {"tls": "Wildcard"}},
    });
    kite_testkit::install::apply(&tenant.client, &platform.to_string())
        .await
        .unwrap();
}

/// F-11: the tenant holds its machine's Secrets, and no certificate of the platform's.
async fn no_key_but_the_machines_own(tenant: &Tenant<'_>, domain: &str) {
    let secrets: Api<Secret> = tenant.api();
    let secrets = secrets.list(&ListParams::default()).await.unwrap();
    let secrets = secrets.iter().map(ResourceExt::name_any);
    let names: Vec<_> = secrets.filter(|name| name.starts_with("web")).collect();
    assert_eq!(names, ["web-cloud-init", "web-ssh-key"]);
    let ingress: Ingress = tenant.api().get("web").await.unwrap();
    let tls = ingress.spec.unwrap().tls.unwrap();
    assert_eq!(tls[0].hosts, Some(vec![format!("bob-web.{domain}")]));
    assert_eq!(tls[0].secret_name, None);
}
