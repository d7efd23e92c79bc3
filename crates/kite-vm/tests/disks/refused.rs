//! What the server refuses is told in its words, and tried again when it may be mended.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use kite_api::condition::{NAME_CONFLICT, RESOURCES_APPLIED, STALLED};
use kite_kubevirt::read::VirtualMachine;
use kite_testkit::install;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

use crate::common::{LONG, Place, condition_of};

// V-17: a webhook's and a policy's refusal, each in its own words; what does not depend on it is made
#[tokio::test]
async fn a_refused_child_is_told_in_the_servers_words_and_the_others_are_made() {
    let place = Place::new("refused").await;
    place
        .fault("web", Some("refuse=no machines on a Sunday"))
        .await;
    place.machine("web", json!({"powerState": "Off"})).await;
    let told = place.says("web", RESOURCES_APPLIED, "Rejected").await;
    let message = &condition_of(&told, STALLED).unwrap().message;
    assert!(message.contains("VirtualMachine web"), "{message}");
    assert!(message.contains("no machines on a Sunday"), "{message}");
    place.until("web", LONG, |_: &Service| true).await;
    place.fault("web", None).await;
    place.applied("web").await;

    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-services"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["services"],
            }]},
            "validations": [{"expression": "object.metadata.name != 'shop'", "message": "no shops here"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-services"},
        "spec": {"policyName": "no-services", "validationActions": ["Deny"]},
    });
    for object in [&policy, &binding] {
        install::apply(&place.client, &object.to_string())
            .await
            .unwrap();
    }
    // The server takes a moment to hold a new policy.
    let probe = json!({"metadata": {"name": "shop"}, "spec": {"ports": [{"port": 80}]}});
    let probe: Service = serde_json::from_value(probe).unwrap();
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    kite_testkit::wait::eventually("the policy to hold", LONG, async || {
        let answer = place.api::<Service>().create(&dry, &probe).await;
        answer.err().map(|_| ())
    })
    .await
    .unwrap();
    place.machine("shop", json!({"powerState": "Off"})).await;
    let told = place.says("shop", RESOURCES_APPLIED, "Rejected").await;
    let message = &condition_of(&told, STALLED).unwrap().message;
    assert!(
        message.contains("Service shop") && message.contains("no shops here"),
        "{message}"
    );
    place.until("shop", LONG, |_: &VirtualMachine| true).await;
    place
        .cluster
        .control_plane
        .kubectl(&["delete", "validatingadmissionpolicybinding", "no-services"])
        .await
        .unwrap();
    place.applied("shop").await;
}

// V-17, row VM6: a claim that somebody else put under the machine's name is neither used nor touched
#[tokio::test]
async fn a_claim_of_somebody_else_is_left_alone_and_the_machine_does_not_boot_it() {
    let place = Place::new("planted").await;
    let claims = place.api::<PersistentVolumeClaim>();
    let planted = json!({
        "metadata": {"name": "web"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": {"requests": {"storage": "1Gi"}}},
    });
    let planted = serde_json::from_value(planted).unwrap();
    let before = claims
        .create(&PostParams::default(), &planted)
        .await
        .unwrap();
    place.machine("web", json!({"powerState": "Off"})).await;
    let told = place.says("web", RESOURCES_APPLIED, NAME_CONFLICT).await;
    let message = &condition_of(&told, STALLED).unwrap().message;
    assert!(message.contains("PersistentVolumeClaim web"), "{message}");
    let vms = place.api::<VirtualMachine>();
    assert!(vms.get_opt("web").await.unwrap().is_none());
    let mut after = claims.get("web").await.unwrap();
    // The claim controller writes to every claim.
    after
        .metadata
        .resource_version
        .clone_from(&before.metadata.resource_version);
    after
        .metadata
        .managed_fields
        .clone_from(&before.metadata.managed_fields);
    assert_eq!((after.metadata, after.spec), (before.metadata, before.spec));
    claims
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    place.applied("web").await;
}
