//! Machines in every trouble: which verdict each must have, and that it heals.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, ResourceQuota, Service};
use kite_api::KiteVirtualMachine;
use kite_api::condition::DOMAIN_READY;
use kite_testkit::cluster::IMAGE_NAMESPACE;
use kite_testkit::install;
use kite_testkit::kstatus::Judge;
use kite_testkit::tenant::{Place, Tenant};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::scene::{Seen, cluster, reached, says};

/// Two cores carry a dozen machines at once, and some must first be stuck for a while.
const LIMIT: Duration = Duration::from_mins(3);

const CURRENT: &str = "Current";
const FAILED: &str = "Failed";

/// What happens to a machine that is being made, and what tools must make of it: its name, what its
/// specification has beyond the smallest, the word by which the stand-ins bring the trouble about,
/// the verdict, and a condition with what it says.
const NEW: &str = r#"
    fine          | {"domainPrefix": "shop"}                 |                      | Current    | Ready=True Running
    off           | {"powerState": "Off"}                    |                      | Current    | Ready=True Stopped
    agent         |                                          | agent-connected      | Current    | Ready=True Running
    newer         |                                          | webhook-adds         | Current    | Ready=True Running

    unready-image | {"image": "not-ready"}                   |                      | InProgress | Accepted=False ImageNotReady
    no-secret     | {"passwordSecretRef": {"name": "late"}}  |                      | InProgress | ResourcesApplied=False PasswordNotFound
    no-webhook    |                                          | no-answer            | InProgress | ResourcesApplied=False ApplyFailed
    unseen        |                                          | unseen               | InProgress | Ready=False WaitingForKubeVirt
    restarts      | {"image": "slow"}                        | clone-restarts       | InProgress | DiskReady=False Retrying
    crashing      |                                          | printable-status=CrashLoopBackOff    | InProgress | Ready=False CrashLoopBackOff
    unplaced      |                                          | printable-status=ErrorUnschedulable  | InProgress | Ready=False ErrorUnschedulable
    unheard-of    |                                          | printable-status=Levitating          | InProgress | Ready=Unknown Unknown
    paused        |                                          |                      | InProgress | ResourcesApplied=False ReconciliationPaused

    host-taken    | {"domainPrefix": "shop"}                 |                      | Failed     | Stalled=True HostNameTaken
    reserved      | {"domainPrefix": "www"}                  |                      | Failed     | Stalled=True InvalidSpec
    no-image      | {"image": "not-there"}                   |                      | Failed     | Stalled=True ImageNotFound
    in-the-way    |                                          |                      | Failed     | Stalled=True NameConflict
    refused       |                                          | refuse=not today     | Failed     | Stalled=True Rejected
    refused-disk  |                                          | refuse-disk=not today | Failed    | Stalled=True Rejected
    stuck         | {"image": "slow"}                        | clone-stuck          | Failed     | Stalled=True Stuck
    clone-failed  | {"image": "slow"}                        | clone-failed         | Failed     | Stalled=True CloneFailed
    disk-unseen   | {"image": "slow"}                        | disk-unseen          | Failed     | Stalled=True Stuck
"#;

/// A row of a table.
struct Case {
    name: &'static str,
    spec: Value,
    fault: Option<&'static str>,
    verdict: &'static str,
    says: (&'static str, &'static str),
}

fn cases(table: &'static str) -> Vec<Case> {
    let rows = table.lines().filter(|line| !line.trim().is_empty());
    rows.map(case).collect()
}

fn case(line: &'static str) -> Case {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let [name, spec, fault, verdict, says] = cells[..] else {
        panic!("{line} is no row");
    };
    let spec = if spec.is_empty() { "{}" } else { spec };
    Case {
        name,
        spec: serde_json::from_str(spec).unwrap(),
        fault: Some(fault).filter(|word| !word.is_empty()),
        verdict,
        says: says.split_once('=').unwrap(),
    }
}

// C-9, C-11, C-15, S-2, D-4, V-4, V-10, V-14, V-17: every trouble of a machine that is being made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_machine_is_failed_exactly_when_a_person_must_act() {
    let tenant = Tenant::new(cluster().await, "new").await;
    crate::users::without_quota(&tenant).await;
    let judge = Arc::new(Judge::start().await.unwrap());
    let seen = Seen::<KiteVirtualMachine>::start(tenant.api(), judge).await;
    let cases = cases(NEW);
    ask(&tenant, &cases, true).await;
    image_that_is_not_ready(&tenant).await;
    let foreign = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "in-the-way", "namespace": "new"}, "spec": {"ports": [{"port": 1}]}});
    install::apply(&tenant.client, &foreign.to_string())
        .await
        .unwrap();
    for case in &cases {
        if case.name == "paused" {
            let object = json!({"apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine", "metadata": {"name": "paused", "namespace": "new", "annotations": {"kite.dev/paused": "true"}}, "spec": {"cpu": 1, "memory": "1Gi", "disk": "2Gi", "image": "ubuntu-24.04"}});
            install::apply(&tenant.client, &object.to_string())
                .await
                .unwrap();
        } else {
            tenant.machine(case.name, case.spec.clone()).await;
        }
        if case.name == "fine" {
            // Its host name is to be taken before the other asks for it.
            tenant.says("fine", DOMAIN_READY, "Held").await;
        }
    }
    all_come_to(&seen, &cases).await;
    never_too_early(&seen, &cases);
    mend(&tenant, &cases).await;
    for case in &cases {
        reached(&seen, case.name, "Current again", LIMIT, |_, verdict| {
            verdict == CURRENT
        })
        .await;
        println!("{}: {:?}", case.name, seen.verdicts(case.name));
    }
    seen.was_right_at_every_event();
}

/// Waits until each machine is as its row says.
async fn all_come_to(seen: &Seen<KiteVirtualMachine>, cases: &[Case]) {
    let mut wrong = Vec::new();
    for case in cases {
        let (type_, words) = case.says;
        let holds = |machine: &KiteVirtualMachine, verdict: &str| {
            verdict == case.verdict && says(machine, type_).as_deref() == Some(words)
        };
        let what = format!("{} with {type_}={words}", case.verdict);
        let reached = seen.comes_to(case.name, &what, LIMIT, holds).await;
        if !reached {
            wrong.push(format!(
                "{}: {what}; is {:?}, was {:?}",
                case.name,
                seen.newest().get(case.name),
                seen.verdicts(case.name)
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What befalls machines that were Ready, and is to be made of it; the table's columns are those of [`NEW`].
const LIVING: &str = r#"
    moved         |                                          | migrate              | Current    | Ready=True Running
    stopped       |                                          | virtctl-stop         | Current    | Ready=True Running
    crashed       |                                          | guest-crash          | Current    | Ready=True Running
    shut-down     |                                          | guest-shutdown       | Current    | Ready=True Running
    agent-comes   |                                          | agent-connected      | Current    | AgentConnected=True AgentAnswers
    lost-node     |                                          | node-lost            | InProgress | Ready=False NodeUnreachable
    paused-later  |                                          | paused               | InProgress | Ready=False Paused
    stays-off     | {"onGuestShutdown": "StayOff"}           | guest-shutdown       | Failed     | Stalled=True GuestShutDown
    lost-disk     | {"powerState": "Off"}                    |                      | Failed     | Stalled=True DiskLost
    bad-edit        |                                          |                      | Failed     | Stalled=True InvalidSpec
    held          |                                          | vmi-finalizer-stays  | Terminating | Deleting=True DeletionBlocked
    held-by-word  |                                          | vmi-finalizer-stays  | InProgress | Deleting=True DeletionBlocked
"#;

/// Those that are deleted, and go when nothing holds them any more.
const DELETED: [&str; 2] = ["held", "held-by-word"];

// C-11, S-2, S-9, V-5, V-15, V-16, V-21: every trouble of a machine that was Ready.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_living_machine_is_failed_exactly_when_a_person_must_act() {
    let tenant = Tenant::new(cluster().await, "living").await;
    crate::users::without_quota(&tenant).await;
    let judge = Arc::new(Judge::start().await.unwrap());
    let seen = Seen::<KiteVirtualMachine>::start(tenant.api(), judge).await;
    let cases = cases(LIVING);
    for case in &cases {
        tenant.machine(case.name, case.spec.clone()).await;
    }
    for case in &cases {
        reached(&seen, case.name, "Current", LIMIT, |_, verdict| {
            verdict == CURRENT
        })
        .await;
    }
    let strategy = json!({"spec": {"domainPrefix": "www"}});
    tenant
        .edit::<KiteVirtualMachine>("bad-edit", strategy)
        .await;
    let disks = tenant.api::<kite_kubevirt::DataVolume>();
    disks
        .delete("lost-disk", &DeleteParams::default())
        .await
        .unwrap();
    ask(&tenant, &cases, true).await;
    let machines = tenant.api::<KiteVirtualMachine>();
    machines
        .delete("held", &DeleteParams::default())
        .await
        .unwrap();
    tenant
        .edit::<KiteVirtualMachine>("held-by-word", json!({"spec": {"delete": true}}))
        .await;
    all_come_to(&seen, &cases).await;

    ask(&tenant, &cases, false).await;
    tenant
        .edit::<KiteVirtualMachine>("bad-edit", json!({"spec": {"domainPrefix": null}}))
        .await;
    let lost = tenant.api::<KiteVirtualMachine>().get("lost-disk").await;
    let claim = lost.unwrap().status.unwrap().claim_uid.unwrap();
    let confirm = json!({"metadata": {"annotations": {"kite.dev/confirm-new-disk": claim}}});
    tenant
        .edit::<KiteVirtualMachine>("lost-disk", confirm)
        .await;
    let off = json!({"spec": {"powerState": "Off"}});
    tenant.edit::<KiteVirtualMachine>("stays-off", off).await;
    reached(
        &seen,
        "stays-off",
        "Current when it is off",
        LIMIT,
        |m, verdict| verdict == CURRENT && says(m, "Ready").as_deref() == Some("True Stopped"),
    )
    .await;
    let on = json!({"spec": {"powerState": "On"}});
    tenant.edit::<KiteVirtualMachine>("stays-off", on).await;
    for name in DELETED {
        tenant.gone::<KiteVirtualMachine>(name, LIMIT).await;
    }
    for case in cases.iter().filter(|case| !DELETED.contains(&case.name)) {
        let well = |_: &KiteVirtualMachine, verdict: &str| verdict == CURRENT;
        reached(&seen, case.name, "Current again", LIMIT, well).await;
        println!("{}: {:?}", case.name, seen.verdicts(case.name));
    }
    assert_eq!(
        seen.verdicts("moved"),
        ["InProgress", "Current"],
        "a migration is no trouble"
    );
    seen.was_right_at_every_event();
}

// C-11, C-20, V-17: the same machine in a namespace without room for it, and in one where Kite may not make its Secrets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_in_a_namespace_that_is_not_fit_is_failed_exactly_when_a_person_must_act() {
    let cluster = cluster().await;
    let full = Tenant::new(cluster, "full").await;
    crate::users::without_quota(&full).await;
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tight", "namespace": "full"},
        "spec": {"hard": {"count/virtualmachines.kubevirt.io": "0"}},
    });
    install::apply(&full.client, &quota.to_string())
        .await
        .unwrap();
    let counted = |q: &ResourceQuota| q.status.as_ref().is_some_and(|s| s.used.is_some());
    full.until("tight", LIMIT, counted).await;
    let bare = Tenant::new(cluster, "bare").await;
    bare.make().await;
    let judge = Arc::new(Judge::start().await.unwrap());
    let of = async |place: &Place| {
        Seen::<KiteVirtualMachine>::start(place.api(), Arc::clone(&judge)).await
    };
    let (in_full, in_bare) = (of(&full).await, of(&bare).await);
    for place in [&full, &bare] {
        place.machine("web", json!({})).await;
    }
    let quota = cases("web | | | InProgress | ResourcesApplied=False QuotaExceeded");
    let right = cases("web | | | Failed | Stalled=True NamespaceNotPrepared");
    all_come_to(&in_full, &quota).await;
    all_come_to(&in_bare, &right).await;
    never_too_early(&in_full, &quota);
    never_too_early(&in_bare, &right);

    let quotas = full.api::<ResourceQuota>();
    quotas
        .delete("tight", &DeleteParams::default())
        .await
        .unwrap();
    bare.prepare().await;
    for seen in [in_full, in_bare] {
        let well = |_: &KiteVirtualMachine, verdict: &str| verdict == CURRENT;
        reached(&seen, "web", "Current again", LIMIT, well).await;
        seen.was_right_at_every_event();
    }
}

/// Asks the stand-ins for every word of the table, or takes them all back.
async fn ask(place: &Place, cases: &[Case], on: bool) {
    let notes: serde_json::Map<String, Value> = cases
        .iter()
        .filter_map(|case| {
            let word = case.fault?;
            let key = format!("stand-in.kite.dev/{}", case.name);
            Some((key, if on { json!(word) } else { Value::Null }))
        })
        .collect();
    let patch = Patch::Merge(json!({"metadata": {"annotations": notes}}));
    let namespaces: Api<Namespace> = Api::all(place.client.clone());
    namespaces
        .patch(&place.namespace, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

/// A published image whose claim was never made.
async fn image_that_is_not_ready(place: &Place) {
    let object = json!({
        "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource",
        "metadata": {"name": "not-ready", "namespace": IMAGE_NAMESPACE, "labels": {"kite.dev/published": "true"}},
        "spec": {"source": {"pvc": {"name": "not-ready", "namespace": IMAGE_NAMESPACE}}},
    });
    install::apply(&place.client, &object.to_string())
        .await
        .unwrap();
}

/// Nobody was sent to act in vain, and nobody was told too early that all is well.
fn never_too_early(seen: &Seen<KiteVirtualMachine>, cases: &[Case]) {
    for case in cases {
        for never in [CURRENT, FAILED].iter().filter(|v| **v != case.verdict) {
            let verdicts = seen.verdicts(case.name);
            assert!(!seen.ever(case.name, never), "{}: {verdicts:?}", case.name);
        }
    }
}

/// Does what each trouble asks for.
async fn mend(tenant: &Tenant<'_>, cases: &[Case]) {
    ask(tenant, cases, false).await;
    for image in ["not-ready", "not-there"] {
        tenant.cluster.publish(image).await.unwrap();
    }
    let hash = format!("$6$saltsalt${}", "a".repeat(86));
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "late", "namespace": "new"}, "stringData": {"passwordHash": hash}});
    install::apply(&tenant.client, &secret.to_string())
        .await
        .unwrap();
    tenant
        .api::<Service>()
        .delete("in-the-way", &DeleteParams::default())
        .await
        .unwrap();
    for name in ["reserved", "host-taken"] {
        let none = json!({"spec": {"domainPrefix": null}});
        tenant.edit::<KiteVirtualMachine>(name, none).await;
    }
    let go_on = json!({"metadata": {"annotations": {"kite.dev/paused": null}}});
    tenant.edit::<KiteVirtualMachine>("paused", go_on).await;
}
