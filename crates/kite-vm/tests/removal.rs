//! The machines' kind itself is removed, by mistake: nothing is destroyed before
//! an administrator says that it was meant.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{LONG, Place, condition_of};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kite_api::KiteVirtualMachine;
use kite_api::condition::DELETING;
use kite_kubevirt::read::{DataVolume, VirtualMachine};
use kite_testkit::{install, wait};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

const CRD: &str = "kitevirtualmachines.kite.dev";

// N-6, row DE10: a CRD deleted by mistake destroys nothing until it is acknowledged
#[tokio::test]
async fn a_removed_kind_takes_no_machine_with_it_until_that_is_acknowledged() {
    let place = Place::new("removal").await;
    place.machine("web", json!({})).await;
    place.applied("web").await;
    let running = place
        .until("web", LONG, |vm: &VirtualMachine| {
            vm.printable_status() == "Running"
        })
        .await;

    let crds: Api<CustomResourceDefinition> = Api::all(place.client.clone());
    crds.delete(CRD, &DeleteParams::background()).await.unwrap();
    let machine = place.says("web", DELETING, "RemovalHeld").await;
    let message = &condition_of(&machine, DELETING).unwrap().message;
    assert!(
        message.contains("kubectl annotate crd kitevirtualmachines.kite.dev"),
        "{message}"
    );
    let vm = place.api::<VirtualMachine>().get("web").await.unwrap();
    assert_eq!(vm.metadata.uid, running.metadata.uid);
    assert!(vm.metadata.deletion_timestamp.is_none());
    assert!(
        place
            .api::<Service>()
            .get_opt("web")
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        place
            .api::<DataVolume>()
            .get_opt("web")
            .await
            .unwrap()
            .is_some()
    );

    let now = kite_runtime::clock::now();
    let yes = json!({"metadata": {"annotations": {"kite.dev/acknowledge-deletion": now}}});
    crds.patch(CRD, &PatchParams::default(), &Patch::Merge(&yes))
        .await
        .unwrap();
    wait::wait_gone(&crds, CRD, LONG).await.unwrap();
    place.gone::<PersistentVolumeClaim>("web", LONG).await;
    place.gone::<VirtualMachine>("web", LONG).await;

    // Installed again, the kind works as before, without a restart.
    install::kite_crds(&place.cluster.control_plane)
        .await
        .unwrap();
    place.machine("web", json!({})).await;
    place.applied("web").await;
    let machines: Api<KiteVirtualMachine> = place.api();
    assert!(
        machines
            .get("web")
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_none()
    );
}
