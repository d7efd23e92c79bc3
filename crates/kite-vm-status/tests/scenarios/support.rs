//! One cluster in which kite-vm-status runs alone, and short ways to play the others.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt;
use kite_api::condition::READY;
use kite_api::{KiteVirtualMachine, Phase};
use kite_kubevirt::{VirtualMachine, VirtualMachineInstance};
use kite_testkit::audit::{Mark, Request};
use kite_testkit::by_hand::{ByHand, condition};
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::kstatus::Judge;
use kite_testkit::{Cluster, ClusterOptions, Options, install};
use kube::ResourceExt;
use kube::api::{WatchEvent, WatchParams};
use serde_json::{Value, json};
use tokio::sync::{OnceCell, RwLock};

/// The controller under test.
pub const NAME: &str = "kite-vm-status";
/// Longer than anything here takes on two busy cores.
pub const LONG: Duration = Duration::from_secs(40);
/// Long enough for a write that must not come.
pub const QUIET: Duration = Duration::from_secs(4);

/// Held for writing while a second copy of the controller runs, whose requests would be counted too.
pub static ALONE: RwLock<()> = RwLock::const_new(());

pub struct World {
    pub cluster: Cluster,
    /// What was said while KubeVirt was not installed.
    pub before: String,
    /// How long it took until KubeVirt was seen after it was installed.
    pub picked_up: Duration,
}

/// One cluster for all tests. KubeVirt comes to it when the controller is already there.
pub async fn world() -> &'static World {
    static WORLD: OnceCell<World> = OnceCell::const_new();
    WORLD
        .get_or_init(|| async {
            let others = CONTROLLERS.into_iter().filter(|c| *c != NAME);
            let control_plane = Options {
                controller_manager: false,
                ..Options::default()
            };
            let options = ClusterOptions {
                speed: 4.0,
                stand_ins: false,
                without: others.collect(),
                control_plane,
                ..ClusterOptions::default()
            };
            let cluster = Cluster::start(options).await.unwrap();
            let hand = ByHand::new(cluster.client().await, "early").await.unwrap();
            hand.machine("web", &json!({})).await.unwrap();
            hand.say(
                "web",
                &json!({"phase": "Provisioning"}),
                &[("ResourcesApplied", "False", "DependencyMissing")],
            )
            .await
            .unwrap();
            let told = hand
                .until("web", LONG, |m| condition(m, READY) != "absent")
                .await
                .unwrap();
            install::upstream_crds(&cluster.control_plane)
                .await
                .unwrap();
            let began = Instant::now();
            vm(&hand, "web").await;
            hand.say(
                "web",
                &json!({"phase": "Provisioning"}),
                &[("ResourcesApplied", "True", "Applied")],
            )
            .await
            .unwrap();
            hand.until("web", LONG, |m| {
                m.status.as_ref().unwrap().virtual_machine_uid.is_some()
            })
            .await
            .unwrap();
            World {
                before: condition(&told, READY),
                picked_up: began.elapsed(),
                cluster,
            }
        })
        .await
}

pub async fn by_hand(namespace: &str) -> ByHand {
    ByHand::new(world().await.cluster.client().await, namespace)
        .await
        .unwrap()
}

/// The VirtualMachine as kite-vm makes it, and as virt-controller has judged it.
pub async fn vm(hand: &ByHand, name: &str) -> VirtualMachine {
    let machine: KiteVirtualMachine = hand.api().get(name).await.unwrap();
    let object = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
        "spec": {"runStrategy": "Always", "template": {"spec": {"domain": {"devices": {}}}}},
    });
    let vm: VirtualMachine = hand.child(&machine, true, object).await.unwrap();
    says(hand, name, "Provisioning", &json!({})).await;
    vm
}

/// virt-controller says something of a machine, whose instance is not ready unless told otherwise.
pub async fn says(hand: &ByHand, name: &str, word: &str, more: &Value) {
    let mut status = json!({
        "printableStatus": word,
        "conditions": [{"type": "Ready", "status": "False", "reason": "GuestNotRunning"}],
    });
    status
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    hand.status::<VirtualMachine>(name, &status).await.unwrap();
}

pub fn ready() -> Value {
    json!({"created": true, "runStrategy": "Always", "conditions": [{"type": "Ready", "status": "True"}]})
}

/// A guest that runs.
pub async fn guest(hand: &ByHand, name: &str, vm: &VirtualMachine) {
    let machine: KiteVirtualMachine = hand.api().get(name).await.unwrap();
    let uid = machine.uid().unwrap();
    let object = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
        "metadata": {"name": name, "labels": {"kite.dev/vm-uid": uid}, "ownerReferences": [{
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": name,
            "uid": vm.uid().unwrap(), "controller": true,
        }]},
        "spec": {"domain": {"devices": {}}},
    });
    hand.apply::<VirtualMachineInstance>("virt-controller", name, &object)
        .await
        .unwrap();
    let running = json!({"status": {"phase": "Running", "nodeName": "n1", "interfaces": [{"ipAddress": "10.0.0.9"}]}});
    // Of the three kinds of KubeVirt this one has no status subresource.
    hand.edit::<VirtualMachineInstance>(name, &running)
        .await
        .unwrap();
}

/// A machine that runs and of which that is told.
pub async fn running(hand: &ByHand, name: &str) -> VirtualMachine {
    hand.machine(name, &json!({})).await.unwrap();
    let vm = vm(hand, name).await;
    hand.say(
        name,
        &json!({"phase": "Provisioning"}),
        &[("ResourcesApplied", "True", "Applied")],
    )
    .await
    .unwrap();
    guest(hand, name, &vm).await;
    says(hand, name, "Running", &ready()).await;
    hand.until(name, LONG, |m| condition(m, READY) == "True Running")
        .await
        .unwrap();
    vm
}

pub fn phase(machine: &KiteVirtualMachine) -> Option<Phase> {
    machine.status.as_ref().and_then(|s| s.phase)
}

pub async fn mark(hand: &ByHand) -> Mark {
    world()
        .await
        .cluster
        .control_plane
        .audit()
        .unwrap()
        .settled_mark(&hand.client)
        .await
        .unwrap()
}

/// What the controller asked of the server about a namespace since a mark, events apart.
pub async fn requests(hand: &ByHand, since: Mark) -> Vec<Request> {
    mark(hand).await;
    let all = world()
        .await
        .cluster
        .control_plane
        .audit()
        .unwrap()
        .since(since)
        .unwrap();
    let own = |r: &Request| {
        r.is_by(NAME) && !r.is_watch() && !r.is_event() && r.namespace == hand.namespace
    };
    all.into_iter().filter(own).collect()
}

/// Sees each change of a machine with what kstatus makes of it, until it is stopped.
pub struct Watcher {
    seen: Arc<Mutex<Vec<(KiteVirtualMachine, String)>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Watcher {
    pub async fn of(hand: &ByHand, name: &str) -> Self {
        let judge = Judge::start().await.unwrap();
        let params = WatchParams::default().fields(&format!("metadata.name={name}"));
        let mut events = Box::pin(
            hand.api::<KiteVirtualMachine>()
                .watch(&params, "0")
                .await
                .unwrap(),
        );
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Some(Ok(event)) = events.next().await {
                if let WatchEvent::Added(machine) | WatchEvent::Modified(machine) = event {
                    let mut object = serde_json::to_value(&machine).unwrap();
                    object["apiVersion"] = json!("kite.dev/v1alpha1");
                    object["kind"] = json!("KiteVirtualMachine");
                    let verdict = judge.status_of(&object).unwrap().status;
                    kept.lock().unwrap().push((machine, verdict));
                }
            }
        });
        Self { seen, task }
    }

    pub fn stop(self) -> Vec<(KiteVirtualMachine, String)> {
        self.task.abort();
        self.seen.lock().unwrap().clone()
    }
}
