//! Things that come in the wrong order, and then are all there.

use std::net::SocketAddr;
use std::time::Instant;

use kite_testkit::cluster::{CONTROLLERS, IMAGE};
use kite_testkit::helm::Helm;
use kite_testkit::install::SYSTEM_NAMESPACE;
use kite_testkit::installed::Installed;
use kite_testkit::tenant::{LONG, Tenant};
use kite_testkit::wait::eventually;
use kite_testkit::{AgentOptions, ClusterOptions, Options, http_get};
use serde_json::json;

use crate::paused::what_a_paused_controller_said_grows_old_and_catches_up;
use crate::release::restarts;

/// Who looks at no kind of KubeVirt's or CDI's.
const WITHOUT_KUBEVIRT: [&str; 3] = ["kite-user", "kite-namespace", "kite-service"];

// C-14
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn controllers_that_came_first_wait_and_begin_when_what_they_need_has_come() {
    let _turn = crate::TURN.read().await;
    let options = ClusterOptions {
        kite: false,
        stand_ins: false,
        control_plane: Options {
            scheduler: true,
            ..Options::default()
        },
        ..ClusterOptions::default()
    };
    let ground = Installed::on(options, AgentOptions::default())
        .await
        .unwrap();

    // Given that there is neither a kind of Kite's nor one of KubeVirt's, each runs and says what it
    // waits for;
    ground
        .install_all(Helm::Four, &["crds.enabled=false"])
        .await
        .unwrap();
    let pods = restarts(&ground).await;
    assert_eq!(pods.len(), CONTROLLERS.len(), "{pods:?}");
    for controller in CONTROLLERS {
        let waits = waits(&ground, controller, |waits| waits.contains("Kite")).await;
        println!("at first {controller} waits for {waits}");
    }

    // when Kite's kinds come, those who need nothing else begin;
    ground.install(Helm::Four, "kite-crds", &[]).await.unwrap();
    let start = Instant::now();
    let alice = Tenant::new(&ground.cluster, "alice").await;
    alice.create().await;
    println!(
        "{:5.1} s  from Kite's kinds to a user",
        start.elapsed().as_secs_f32()
    );
    for controller in CONTROLLERS {
        let left = waits(&ground, controller, |waits| !waits.contains("Kite")).await;
        println!("then {controller} waits for {left}");
        assert_eq!(
            left.is_empty(),
            WITHOUT_KUBEVIRT.contains(&controller),
            "{left}"
        );
    }

    // when KubeVirt and CDI come, all do;
    alice.machine("web", json!({})).await;
    let start = Instant::now();
    ground.cluster.start_stand_ins().await.unwrap();
    ground.cluster.publish(IMAGE).await.unwrap();
    alice.ready("web").await;
    println!(
        "{:5.1} s  from KubeVirt to a machine",
        start.elapsed().as_secs_f32()
    );
    for controller in CONTROLLERS {
        waits(&ground, controller, str::is_empty).await;
    }

    // and nobody had to be started again for it.
    assert_eq!(restarts(&ground).await, pods);
    assert!(pods.values().all(|restarts| *restarts == 0), "{pods:?}");

    what_a_paused_controller_said_grows_old_and_catches_up(&ground, &alice).await;
}

/// Waits until the kinds that a controller says it waits for are such, and returns them.
async fn waits(on: &Installed, controller: &str, such: impl Fn(&str) -> bool) -> String {
    let mut last = String::new();
    let found = eventually(controller, LONG, async || {
        last = missing(on, controller).await?;
        such(&last).then_some(())
    })
    .await;
    assert!(found.is_ok(), "{controller} waits for {last}");
    last
}

/// The kinds that the pod of a controller waits for.
async fn missing(on: &Installed, controller: &str) -> Option<String> {
    let pod = on.agent.pods_of(SYSTEM_NAMESPACE, controller).pop()?;
    let address = on.agent.address(SYSTEM_NAMESPACE, &pod)?;
    let address = SocketAddr::from((address, 8080));
    let (code, body) = http_get::get(address, "/readyz?verbose").await.ok()?;
    assert_eq!(code, 200, "{body}");
    let kind = |line: &str| {
        Some(
            line.split_once("watch ")?
                .1
                .split_once(": missing")?
                .0
                .to_owned(),
        )
    };
    Some(body.lines().filter_map(kind).collect::<Vec<_>>().join(", "))
}
