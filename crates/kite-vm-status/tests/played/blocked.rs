//! What stands in the way, layer by layer, as the others really say it.

use k8s_openapi::api::core::v1::ResourceQuota;
use kite_api::KiteVirtualMachine;
use kite_testkit::install;
use kite_testkit::place::{LONG, Place};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::{blocked, place};

/// Waits until the line is this.
async fn says(place: &Place, name: &str, line: &'static str) {
    place
        .until(name, LONG, |m: &KiteVirtualMachine| blocked(m) == line)
        .await;
}

async fn quota(place: &Place, hard: Value) {
    let object = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": place.namespace}, "spec": {"hard": hard},
    });
    install::apply(&place.client, &object.to_string())
        .await
        .unwrap();
    let counted = |q: &ResourceQuota| q.status.as_ref().is_some_and(|s| s.used.is_some());
    place.until("small", LONG, counted).await;
}

// S-7, C-11
#[tokio::test]
async fn each_layer_is_named_with_the_object_to_look_at_and_nothing_when_it_has_gone() {
    let place = place("layers").await;
    place.fault("stuck", Some("clone-failed")).await;
    place.fault("unseen", Some("unseen")).await;
    place
        .machine("image", json!({"image": "no-such-image"}))
        .await;
    place.machine("stuck", json!({})).await;
    place.machine("unseen", json!({})).await;
    place.machine("web", json!({})).await;
    let own = async {
        says(
            &place,
            "image",
            "image: ImageNotFound, see DataSource no-such-image",
        )
        .await;
        says(&place, "stuck", "disk: CloneFailed, see DataVolume stuck").await;
        let line = "KubeVirt: WaitingForKubeVirt, see VirtualMachine unseen";
        says(&place, "unseen", line).await;
        place.fault("unseen", None).await;
        let ready = place.ready("unseen").await;
        assert_eq!(blocked(&ready), "");
    };
    let web = async {
        let ready = place.ready("web").await;
        assert_eq!(blocked(&ready), "");
        let error = Some("printable-status=ErrorUnschedulable");
        place.fault("web", error).await;
        let line = "scheduling: ErrorUnschedulable, see VirtualMachineInstance web";
        says(&place, "web", line).await;
        place.fault("web", None).await;
        let ready = place.ready("web").await;
        assert_eq!(blocked(&ready), "");
    };
    tokio::join!(own, web);
}

// S-7: the launcher is refused by the server's own quota, again and again under another name.
#[tokio::test]
async fn a_quota_that_leaves_no_room_for_the_launcher_is_named_and_told_once() {
    let place = place("no-room").await;
    place.machine("web", json!({"powerState": "Off"})).await;
    place.ready("web").await;
    quota(&place, json!({"requests.memory": "100Mi"})).await;
    let edit = json!({"spec": {"powerState": "On"}});
    place.edit::<KiteVirtualMachine>("web", edit).await;
    let seen = place.follow::<KiteVirtualMachine>("web").await;
    says(
        &place,
        "web",
        "quota: QuotaExceeded, see ResourceQuota small",
    )
    .await;
    // It is tried again every half second here.
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    place
        .api::<ResourceQuota>()
        .delete("small", &DeleteParams::default())
        .await
        .unwrap();
    let ready = place.ready("web").await;
    assert_eq!(blocked(&ready), "");
    let seen = seen.end(&ready).await;
    let mut lines: Vec<_> = seen.iter().map(blocked).collect();
    lines.dedup();
    assert_eq!(
        lines,
        ["", "quota: QuotaExceeded, see ResourceQuota small", ""]
    );
}
