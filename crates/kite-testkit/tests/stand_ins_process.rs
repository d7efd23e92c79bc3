//! The stand-ins as a process of their own: killed midway, started again,
//! stopped in good order, and as quiet as the real controllers when nothing
//! changes.

use std::process::Command;
use std::time::{Duration, Instant};

use kite_testkit::audit::Table;
use kite_testkit::install::upstream_crds;
use kite_testkit::process::Process;
use kite_testkit::stand_ins::publish_image;
use kite_testkit::wait::eventually;
use kite_testkit::{ControlPlane, Options};
use kube::Client;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_mins(2);
const NAMESPACE: &str = "many";
/// Twenty ticks of three seconds pass in as many tenths of a second.
const SPEED: &str = "20";

/// How many machines live at once; more by `KITE_STAND_IN_MACHINES`.
fn machines() -> usize {
    let asked = std::env::var("KITE_STAND_IN_MACHINES").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(20)
}

fn api(client: &Client, kind: &str) -> Api<DynamicObject> {
    let (group, version, plural) = match kind {
        "VirtualMachine" => ("kubevirt.io", "v1", "virtualmachines"),
        "VirtualMachineInstance" => ("kubevirt.io", "v1", "virtualmachineinstances"),
        "DataVolume" => ("cdi.kubevirt.io", "v1beta1", "datavolumes"),
        "PersistentVolumeClaim" => ("", "v1", "persistentvolumeclaims"),
        _ => ("", "v1", "pods"),
    };
    let kind = GroupVersionKind::gvk(group, version, kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    Api::namespaced_with(client.clone(), NAMESPACE, &resource)
}

fn start(plane: &ControlPlane) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kite-stand-ins"));
    command.arg("--kubeconfig").arg(plane.admin_kubeconfig());
    command.args(["--speed", SPEED]);
    let log = plane.folder().join("stand-ins.log");
    Process::start("kite-stand-ins", command, &log).unwrap()
}

fn disk(name: &str) -> Value {
    json!({
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataVolume",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "sourceRef": {"kind": "DataSource", "name": "golden", "namespace": "kite-images"},
            "storage": {"resources": {"requests": {"storage": "1Gi"}}},
        },
    })
}

fn machine(name: &str, strategy: &str, guest: &str) -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"runStrategy": strategy, "template": {"spec": {
            "domain": {
                "cpu": {"sockets": 1, "maxSockets": 4},
                "memory": {"guest": guest, "maxGuest": "4Gi"},
                "devices": {"disks": [{"name": "root"}]},
            },
            "volumes": [{"name": "root", "dataVolume": {"name": name}}],
        }}},
    })
}

async fn apply(client: &Client, object: &Value) -> Result<DynamicObject, kube::Error> {
    let params = PatchParams::apply("test").force();
    let kind = object["kind"].as_str().unwrap();
    let name = object["metadata"]["name"].as_str().unwrap();
    api(client, kind)
        .patch(name, &params, &Patch::Apply(object))
        .await
}

async fn count(client: &Client, kind: &str, wanted: impl Fn(&DynamicObject) -> bool) -> usize {
    let list = api(client, kind)
        .list(&ListParams::default())
        .await
        .unwrap();
    list.items.iter().filter(|object| wanted(object)).count()
}

async fn wait_count(
    client: &Client,
    kind: &str,
    number: usize,
    wanted: impl Fn(&DynamicObject) -> bool,
) {
    let what = format!("{number} of {kind}");
    eventually(&what, LIMIT, async || {
        (count(client, kind, &wanted).await == number).then_some(())
    })
    .await
    .unwrap();
}

fn ready(machine: &DynamicObject) -> bool {
    machine.data["status"]["ready"] == true
}

#[tokio::test]
async fn a_process_that_is_killed_midway_goes_on_where_it_was_and_then_is_quiet() {
    let plane = ControlPlane::start(Options::default()).await.unwrap();
    upstream_crds(&plane).await.unwrap();
    plane.restart_controller_manager().await.unwrap();
    let client = plane.admin_client().await.unwrap();
    let stand_ins = start(&plane);
    eventually("the storage class", LIMIT, async || {
        publish_image(&client, "kite-images", "golden", "1Gi")
            .await
            .ok()
    })
    .await
    .unwrap();
    plane
        .kubectl(&["create", "namespace", NAMESPACE])
        .await
        .unwrap()
        .ok()
        .unwrap();
    eventually("the webhooks", LIMIT, async || {
        apply(&client, &disk("vm-0")).await.ok()
    })
    .await
    .unwrap();

    let began = Instant::now();
    for number in 0..machines() {
        apply(&client, &disk(&format!("vm-{number}")))
            .await
            .unwrap();
        apply(&client, &machine(&format!("vm-{number}"), "Always", "1Gi"))
            .await
            .unwrap();
    }
    eprintln!("{} machines created in {:?}", machines(), began.elapsed());
    let filling = |disk: &DynamicObject| disk.data["status"]["phase"] == "CloneInProgress";
    eventually("a clone", LIMIT, async || {
        (count(&client, "DataVolume", filling).await > 0).then_some(())
    })
    .await
    .unwrap();
    stand_ins.kill();
    let refused = apply(&client, &machine("late", "Always", "1Gi"))
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("failed calling webhook"),
        "{refused}"
    );

    let stand_ins = start(&plane);
    wait_count(&client, "VirtualMachine", machines(), ready).await;
    let spent = |process: &Process| process.cpu();
    eprintln!(
        "all run after {:?}; CPU time: stand-ins {:?}, apiserver {:?}",
        began.elapsed(),
        spent(&stand_ins),
        plane.apiserver().as_deref().map(spent),
    );
    is_quiet(&plane, &client).await;
    follows_live(&client).await;
    stops_and_goes(&plane, &client).await;
    ends_in_good_order(&plane, &stand_ins).await;
}

/// Nothing changes, so nothing is sent.
async fn is_quiet(plane: &ControlPlane, client: &Client) {
    wait_count(client, "PersistentVolumeClaim", machines(), |_| true).await;
    // The server's claim controller may look at the image's claim late.
    let image = [
        "-n",
        "kite-images",
        "get",
        "pvc",
        "golden",
        "-o",
        "jsonpath={.status.phase}",
    ];
    eventually("the image's claim to be bound", LIMIT, async || {
        let phase = plane.kubectl(&image).await.ok()?.ok().ok()?;
        (phase == "Bound").then_some(())
    })
    .await
    .unwrap();
    let audit = plane.audit().unwrap();
    let own = |agent: &str| agent.starts_with("kite-stand-ins");
    let life = audit.all().unwrap();
    let life: Vec<_> = life
        .into_iter()
        .filter(|request| own(&request.user_agent))
        .collect();
    eprintln!("requests of {} lives:\n{}", machines(), Table::of(&life));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mark = audit.settled_mark(client).await.unwrap();
    tokio::time::sleep(Duration::from_secs(4)).await;
    audit.settled_mark(client).await.unwrap();
    let sent = audit.since(mark).unwrap();
    let sent: Vec<_> = sent
        .iter()
        .filter(|sent| own(&sent.user_agent) && !sent.is_watch())
        .collect();
    assert!(sent.is_empty(), "{sent:#?}");
}

/// More memory reaches the guest; another name for a disk waits for a restart.
/// What the webhook filled in outlives an apply that does not name it.
async fn follows_live(client: &Client) {
    let uuid = |vm: &DynamicObject| {
        vm.data["spec"]["template"]["spec"]["domain"]["firmware"]["uuid"].clone()
    };
    let before = api(client, "VirtualMachine").get("vm-0").await.unwrap();
    let after = apply(client, &machine("vm-0", "Always", "2Gi"))
        .await
        .unwrap();
    assert_eq!(uuid(&before), uuid(&after));
    assert!(uuid(&after).is_string());
    let grown = |vmi: &DynamicObject| vmi.data["spec"]["domain"]["memory"]["guest"] == "2Gi";
    wait_count(client, "VirtualMachineInstance", 1, grown).await;
    let mut renamed = machine("vm-0", "Always", "2Gi");
    renamed["spec"]["template"]["spec"]["hostname"] = json!("other");
    apply(client, &renamed).await.unwrap();
    let told = |vm: &DynamicObject| vm.data["status"].to_string().contains("RestartRequired");
    wait_count(client, "VirtualMachine", 1, told).await;
}

async fn stops_and_goes(plane: &ControlPlane, client: &Client) {
    apply(client, &machine("vm-0", "Halted", "2Gi"))
        .await
        .unwrap();
    wait_count(client, "VirtualMachineInstance", machines() - 1, |_| true).await;
    let all = ListParams::default();
    for kind in ["VirtualMachine", "DataVolume"] {
        let api = api(client, kind);
        api.delete_collection(&DeleteParams::default(), &all)
            .await
            .unwrap();
    }
    for kind in [
        "VirtualMachine",
        "VirtualMachineInstance",
        "DataVolume",
        "PersistentVolumeClaim",
        "Pod",
    ] {
        wait_count(client, kind, 0, |_| true).await;
    }
    eventually("only the image's volume to be left", LIMIT, async || {
        let volumes = plane
            .kubectl(&["get", "persistentvolumes", "-o", "name"])
            .await
            .ok()?;
        (volumes.ok().ok()?.lines().count() == 1).then_some(())
    })
    .await
    .unwrap();
}

async fn ends_in_good_order(plane: &ControlPlane, stand_ins: &Process) {
    let status = stand_ins.stop(Duration::from_secs(10)).await.unwrap();
    assert!(status.success(), "{status}: {}", stand_ins.log_tail(5));
    for kind in [
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
    ] {
        let left = plane
            .kubectl(&["get", kind, "-o", "name"])
            .await
            .unwrap()
            .ok()
            .unwrap();
        assert_eq!(left.trim(), "");
    }
}
