//! Kite's processes behind Deployments: the node agent does what a kubelet
//! would, so that the real scheduler and Kubernetes' own controllers see pods
//! that start, fail, end and are moved.
//!
//! No rule of Kite's is proven here; that the ground is true is.

mod ground;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kite_testkit::http_get;
use kite_testkit::wait::{eventually, wait_gone, wait_until};
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;

use ground::{App, GENTLE, LONG, container, last, waiting};

#[tokio::test]
async fn a_deployment_becomes_ready_with_the_rights_and_the_name_of_its_pod() {
    let app = App::new("plain").await;

    // Given a Deployment with the account and the generated rights of kite-user,
    app.deploy(1, json!({}), json!({})).await;
    app.rolled_out().await;
    let pod = app.pod().await;

    // then its process answers at the pod's address, which no other has,
    let address = app.address(&pod);
    let known = app.api::<Pod>().get(&pod).await.unwrap();
    let status = known.status.as_ref().unwrap();
    assert_eq!(status.pod_ip, Some(address.to_string()));
    assert!(
        address.is_loopback() && address.octets()[1] != 0,
        "{address}"
    );
    let metrics = http_get::get(SocketAddr::from((address, 8080)), "/metrics").await;
    assert!(metrics.unwrap().1.contains("kite-user"));

    // has a token that was made for this pod alone,
    let (user, pods) = app.token_of(&pod).await;
    assert_eq!(user, "system:serviceaccount:kite-system:kite-user");
    assert_eq!(pods, [pod.as_str()]);

    // and is a pod like any other to those who look.
    let running = container(&known).unwrap();
    assert_eq!((running.ready, running.restart_count), (true, 0));
    assert_eq!(status.phase.as_deref(), Some("Running"));
    assert!(
        known
            .spec
            .as_ref()
            .unwrap()
            .node_name
            .as_ref()
            .unwrap()
            .starts_with("kite-node-")
    );
    let process = app.process(&pod);
    assert!(process.memory().unwrap().resident > 0);
    app.remove().await;
}

#[tokio::test]
async fn a_deployment_is_scaled_and_rolled_and_its_processes_end_gently() {
    let app = App::new("scaled").await;
    let spread = json!({"topologySpreadConstraints": [{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "scaled"}}, "matchLabelKeys": ["pod-template-hash"],
    }]});
    app.deploy(1, spread, json!({})).await;
    app.rolled_out().await;

    // When it is scaled to two, the pods stand on two nodes.
    let scale = async |replicas: &str| {
        let scale = ["scale", "deployment", app.name, replicas];
        app.kubectl(&scale).await.ok().unwrap();
        app.rolled_out().await;
    };
    scale("--replicas=2").await;
    let before = app.alive();
    assert_eq!(before.len(), 2);
    assert_ne!(app.address(&before[0]), app.address(&before[1]));
    let nodes: Vec<_> = app
        .pods()
        .await
        .into_iter()
        .map(|p| p.spec.unwrap().node_name)
        .collect();
    assert_ne!(nodes[0], nodes[1]);

    // When it is rolled, none of the old ones is left, and each was told to end.
    app.kubectl(&["rollout", "restart", "deployment", app.name])
        .await
        .ok()
        .unwrap();
    app.rolled_out().await;
    for pod in &before {
        wait_gone(&app.api::<Pod>(), pod, LONG).await.unwrap();
        assert!(app.log(pod).contains(GENTLE), "{}", app.log(pod));
    }
    let after = app.alive();
    assert!(after.len() == 2 && after.iter().all(|pod| !before.contains(pod)));

    // When it is scaled to none, no process is left.
    scale("--replicas=0").await;
    let gone = eventually("no process", LONG, async || {
        app.alive().is_empty().then_some(())
    });
    gone.await.unwrap();
    app.remove().await;
}

#[tokio::test]
async fn a_process_that_is_killed_is_started_again_at_once_and_the_next_time_after_a_pause() {
    let app = App::new("killed").await;
    app.deploy(1, json!({}), json!({})).await;
    app.rolled_out().await;
    let pod = app.pod().await;
    let first = app.process(&pod).pid();

    app.process(&pod).kill();
    let status = app.until(&pod, |c| c.restart_count == 1 && c.ready).await;
    let end = last(&status).unwrap();
    assert_eq!((end.exit_code, end.reason.as_deref()), (137, Some("Error")));
    assert_ne!(app.process(&pod).pid(), first);

    app.process(&pod).kill();
    let status = app.until(&pod, |c| waiting(c).is_some()).await;
    let (reason, message) = waiting(&status).unwrap();
    assert_eq!(reason, "CrashLoopBackOff");
    assert!(message.starts_with("back-off 2s restarting"), "{message}");
    app.until(&pod, |c| c.restart_count == 2 && c.ready).await;
    app.remove().await;
}

#[tokio::test]
async fn a_process_that_refuses_its_arguments_says_so_in_its_pod() {
    let app = App::new("refused").await;
    let wrong = json!({
        "args": ["--listen=nowhere"],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    });
    app.deploy(1, json!({}), wrong).await;
    let pod = app.pod().await;

    let again = |c: &_| waiting(c).is_some_and(|(reason, _)| reason == "CrashLoopBackOff");
    let status = app.until(&pod, |c| again(c) && last(c).is_some()).await;
    let end = last(&status).unwrap();
    assert_eq!(end.exit_code, 2);
    let message = end.message.as_deref().unwrap_or_default();
    assert!(
        message.contains("invalid value 'nowhere' for '--listen"),
        "{message}"
    );
    let rollout = ["rollout", "status", "deployment", app.name, "--timeout=1s"];
    assert!(
        app.kubectl(&rollout)
            .await
            .refused()
            .unwrap()
            .contains("timed out")
    );
    app.remove().await;
}

#[tokio::test]
async fn a_frozen_process_fails_its_liveness_probe_and_is_killed_after_its_grace() {
    let app = App::new("frozen").await;
    let probe = json!({
        "httpGet": {"path": "/livez", "port": "metrics"},
        "periodSeconds": 1, "timeoutSeconds": 3, "failureThreshold": 2, "terminationGracePeriodSeconds": 1,
    });
    app.deploy(1, json!({}), json!({"livenessProbe": probe}))
        .await;
    app.rolled_out().await;
    let pod = app.pod().await;

    app.process(&pod).pause().unwrap();
    let status = app.until(&pod, |c| last(c).is_some() && c.ready).await;
    // It could not act on SIGTERM.
    assert_eq!(last(&status).unwrap().exit_code, 137);
    assert_eq!(
        app.pod().await,
        pod,
        "the pod stays, its container is another"
    );
    app.remove().await;
}

#[tokio::test]
async fn a_pod_that_is_deleted_has_its_grace_unless_it_is_deleted_by_force() {
    let app = App::new("deleted").await;
    let grace = json!({"terminationGracePeriodSeconds": 3});
    app.deploy(1, grace, json!({})).await;
    app.rolled_out().await;
    let pods = app.api::<Pod>();

    // One that acts on SIGTERM is gone as soon as it has ended.
    let gentle = app.pod().await;
    pods.delete(&gentle, &DeleteParams::default())
        .await
        .unwrap();
    wait_gone(&pods, &gentle, LONG).await.unwrap();
    assert!(app.log(&gentle).contains(GENTLE));

    // One that cannot is killed when its grace is over.
    app.rolled_out().await;
    let frozen = app.pod().await;
    app.process(&frozen).pause().unwrap();
    let began = Instant::now();
    pods.delete(&frozen, &DeleteParams::default())
        .await
        .unwrap();
    wait_gone(&pods, &frozen, LONG).await.unwrap();
    assert!(
        began.elapsed() >= Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
    assert!(!app.log(&frozen).contains(GENTLE));

    // One that is deleted by force has no object any more, and no process.
    app.rolled_out().await;
    let forced = app.pod().await;
    let process = app.process(&forced);
    process.pause().unwrap();
    pods.delete(&forced, &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    assert!(process.wait(LONG).await.is_some());
    app.remove().await;
}

#[tokio::test]
async fn an_image_that_is_not_kites_waits_and_says_what_would_run() {
    let app = App::new("unknown").await;
    app.deploy(1, json!({}), json!({"image": "example.org/nginx:1"}))
        .await;
    let pod = app.pod().await;
    let status = app
        .until(&pod, |c| {
            waiting(c).is_some_and(|(_, message)| !message.is_empty())
        })
        .await;
    let (reason, message) = waiting(&status).unwrap();
    assert_eq!(reason, "ErrImageNeverPull");
    assert!(
        message.contains("nginx") && message.contains("kite-vm-status"),
        "{message}"
    );
    let known = app.api::<Pod>().get(&pod).await.unwrap();
    assert_eq!(known.status.unwrap().phase.as_deref(), Some("Pending"));
    app.remove().await;
}

#[tokio::test]
async fn a_container_waits_for_its_volumes_and_finds_them_at_its_paths() {
    // Given a Deployment without a token of its own, whose kubeconfig is in a Secret that is not there yet,
    let app = App::new("mounted").await;
    let pod = json!({
        "automountServiceAccountToken": false,
        "volumes": [{"name": "access", "secret": {"secretName": "mounted-access"}}],
    });
    let level = json!({"configMapKeyRef": {"name": "mounted-settings", "key": "level"}});
    let mounted = json!({
        "args": ["--kubeconfig=/etc/kite/access/config", "--identity=$(HOSTNAME)", "--log-level=$(LEVEL)"],
        "env": [{"name": "LEVEL", "valueFrom": level}],
        "volumeMounts": [{"name": "access", "mountPath": "/etc/kite/access"}],
    });
    app.deploy(1, pod, mounted).await;
    let pod = app.pod().await;
    let says = async |reason: &'static str, words: &'static str| {
        app.until(&pod, |c| {
            waiting(c).is_some_and(|(r, m)| r == reason && m.contains(words))
        })
        .await;
    };
    says("ContainerCreating", "secret \"mounted-access\" not found").await;

    // when both are made, one after the other,
    let access = async |text: &str| {
        app.apply(json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "mounted-access", "namespace": "kite-system"},
            "stringData": {"config": text},
        }))
        .await;
    };
    let config = app.user_kubeconfig().await;
    access(&config).await;
    says(
        "CreateContainerConfigError",
        "configmap \"mounted-settings\" not found",
    )
    .await;
    app.apply(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "mounted-settings", "namespace": "kite-system"},
        "data": {"level": "debug"},
    }))
    .await;

    // then it works with them, at the port that Kite takes without a word.
    app.rolled_out().await;
    assert_eq!(app.argument(&pod, "--log-level"), "debug");
    assert_eq!(app.argument(&pod, "--identity"), pod);

    // When the Secret changes, so does the file, and the process goes on.
    let renewed = format!("{config}# renewed\n");
    access(&renewed).await;
    let file = app.argument(&pod, "--kubeconfig");
    let changed = eventually("the new file", LONG, async || {
        let text = std::fs::read_to_string(&file).ok()?;
        (text == renewed).then_some(())
    });
    changed.await.unwrap();
    assert_eq!(app.until(&pod, |_| true).await.restart_count, 0);
    app.remove().await;
}

#[tokio::test]
async fn a_drained_node_is_left_one_by_one_as_the_budget_allows() {
    // Given two replicas, of which a budget lets none go,
    let app = App::new("drained").await;
    app.deploy(2, json!({}), json!({})).await;
    app.rolled_out().await;
    let budget = async |fewest: u32| {
        app.apply(json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": app.name, "namespace": "kite-system"},
            "spec": {"minAvailable": fewest, "selector": {"matchLabels": {"app": app.name}}},
        }))
        .await;
        let budgets = app.api::<PodDisruptionBudget>();
        let healthy = i32::try_from(2 - fewest).unwrap();
        let seen = |b: &PodDisruptionBudget| {
            let generation = b.metadata.generation;
            b.status.as_ref().is_some_and(|s| {
                s.observed_generation == generation && s.disruptions_allowed == healthy
            })
        };
        wait_until(&budgets, app.name, LONG, seen).await.unwrap();
    };
    budget(2).await;
    let moved = app.pods().await.remove(0);
    let node = moved.spec.as_ref().unwrap().node_name.clone().unwrap();
    let selector = format!("--pod-selector=app={}", app.name);
    let drain = async |limit: &str| app.kubectl(&["drain", &node, &selector, limit]).await;

    // when its node is drained, the pod stays;
    let refused = drain("--timeout=3s").await.refused().unwrap();
    assert!(
        refused.contains("would violate the pod's disruption budget"),
        "{refused}"
    );

    // when the budget lets one go, it goes gently, and another comes elsewhere.
    budget(1).await;
    drain("--timeout=120s").await.ok().unwrap();
    app.rolled_out().await;
    assert!(app.log(&moved.name_any()).contains(GENTLE));
    let pods = app.pods().await;
    assert_eq!(pods.len(), 2);
    assert!(
        pods.iter()
            .all(|pod| pod.spec.as_ref().unwrap().node_name.as_ref() != Some(&node))
    );
    app.kubectl(&["uncordon", &node]).await.ok().unwrap();
    app.remove().await;
}
