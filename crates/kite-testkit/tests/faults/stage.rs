//! What a scenario plays on: the shared cluster and the controllers it needs,
//! each behind a fault layer of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use kite_api::KiteVirtualMachine;
use kite_api::condition::RESOURCES_APPLIED;
use kite_kubevirt::VirtualMachine;
use kite_testkit::audit::Mark;
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::fault_layer::{FaultLayer, Seen};
use kite_testkit::tenant::{LONG, Tenant, condition_of};
use kite_testkit::{Cluster, ClusterOptions, KiteOptions, wait};
use kube::Client;
use tokio::sync::{Mutex, MutexGuard, OnceCell};

/// One scenario at a time: a controller works on the objects of all of them.
static TURN: Mutex<()> = Mutex::const_new(());

/// Times of a Lease that a scenario can wait for: 3 s, renewed every second, given up after 2 s.
pub(crate) const SHORT_LEASE: [&str; 4] = [
    "--lease-duration=3s",
    "--renew-interval=1s",
    "--renew-deadline=2s",
    "--retry-interval=500ms",
];

/// The cluster that these scenarios share, and the turn to use it.
pub(crate) async fn cluster() -> (&'static Cluster, MutexGuard<'static, ()>) {
    static SHARED: OnceCell<Result<Cluster, String>> = OnceCell::const_new();
    let turn = TURN.lock().await;
    let started = SHARED
        .get_or_init(|| async {
            let options = ClusterOptions {
                without: CONTROLLERS.to_vec(),
                speed: 30.0,
                ..ClusterOptions::default()
            };
            let started = Cluster::start(options).await;
            started.map_err(|error| format!("{error:#}"))
        })
        .await;
    match started {
        Ok(cluster) => (cluster, turn),
        Err(error) => panic!("no cluster: {error}"),
    }
}

pub(crate) struct Stage {
    pub(crate) cluster: &'static Cluster,
    pub(crate) client: Client,
    layers: BTreeMap<&'static str, FaultLayer>,
    flags: Vec<&'static str>,
    _turn: MutexGuard<'static, ()>,
}

impl Stage {
    /// Starts these controllers, all with these flags.
    pub(crate) async fn new(controllers: &[&'static str], flags: &[&'static str]) -> Self {
        let (cluster, turn) = cluster().await;
        let mut stage = Self {
            cluster,
            client: cluster.client().await,
            layers: BTreeMap::new(),
            flags: flags.to_vec(),
            _turn: turn,
        };
        for name in controllers {
            let options = stage.options(name);
            let layer = FaultLayer::start(&options.kubeconfig).await.unwrap();
            stage.layers.insert(name, layer);
            stage.start(name).await;
        }
        stage
    }

    pub(crate) fn layer(&self, controller: &str) -> &FaultLayer {
        &self.layers[controller]
    }

    /// How a controller is started here.
    pub(crate) fn options(&self, controller: &str) -> KiteOptions {
        let options = self
            .cluster
            .kite_options(controller, controller, &self.flags);
        KiteOptions {
            // A Lease is left by a dead process of the scenario before; the same name takes it at once.
            identity: Some(controller.to_owned()),
            ..options
        }
    }

    /// Starts a controller, again if it lives, and waits until it is ready.
    pub(crate) async fn start(&self, controller: &str) {
        let options = self.options(controller);
        let plane = &self.cluster.control_plane;
        self.layer(controller).run(plane, options).await.unwrap();
    }

    /// Waits until a controller leads and has listed everything: who stands by is ready, too, and
    /// lists when its turn comes.
    pub(crate) async fn works(&self, controller: &str) {
        let process = self.layer(controller).process();
        let works = async || {
            let (code, text) = process.get("/readyz?verbose").await.ok()?;
            (code == 200 && text.contains("role: Leader")).then_some(())
        };
        wait::eventually("the controller to work", LONG, works)
            .await
            .unwrap();
    }

    /// As [`Stage::start`], without waiting.
    pub(crate) async fn start_unready(&self, controller: &str) {
        let options = KiteOptions {
            wait_ready: false,
            ..self.options(controller)
        };
        let plane = &self.cluster.control_plane;
        self.layer(controller).run(plane, options).await.unwrap();
    }

    /// A namespace in which machines may be.
    pub(crate) async fn tenant(&self, name: &str) -> Tenant<'static> {
        let tenant = Tenant::new(self.cluster, name).await;
        tenant.prepare_by_hand().await;
        tenant
    }

    pub(crate) async fn mark(&self) -> Mark {
        let audit = self.cluster.control_plane.audit().unwrap();
        audit.settled_mark(&self.client).await.unwrap()
    }

    /// What Kite made (`made services web`) and deleted in a namespace since a mark, and how often.
    pub(crate) async fn made(&self, namespace: &str, mark: Mark) -> BTreeMap<String, usize> {
        let audit = self.cluster.control_plane.audit().unwrap();
        audit.settled_mark(&self.client).await.unwrap();
        let mut made = BTreeMap::new();
        for request in audit.since(mark).unwrap() {
            let did = match (request.verb.as_str(), request.code) {
                ("create", 201) => "made",
                ("delete", 200 | 202) => "deleted",
                _ => continue,
            };
            let by_kite = request
                .user
                .starts_with("system:serviceaccount:kite-system:kite-");
            if by_kite && request.namespace == namespace && !request.is_event() {
                let key = format!("{did} {} {}", request.target(), request.name);
                *made.entry(key).or_default() += 1;
            }
        }
        made
    }
}

/// Whether kite-vm has said that everything is as the machine asks.
pub(crate) fn is_applied(machine: &KiteVirtualMachine) -> bool {
    condition_of(machine, RESOURCES_APPLIED)
        .is_some_and(|c| c.status == "True" && c.observed_generation == machine.metadata.generation)
}

/// Waits until kite-vm alone has done everything, and the guest runs.
pub(crate) async fn runs(tenant: &Tenant<'_>, name: &str) -> KiteVirtualMachine {
    let machine = tenant.until(name, LONG, is_applied).await;
    let is_up = |vm: &VirtualMachine| vm.printable_status() == "Running";
    tenant.until(name, LONG, is_up).await;
    machine
}

/// Requests of a verb about a kind since a moment of the layer's clock.
pub(crate) fn asked(layer: &FaultLayer, verb: &str, resource: &str, since: Duration) -> Vec<Seen> {
    let is = |s: &Seen| s.asked.verb == verb && s.asked.resource == resource && s.at >= since;
    layer.seen().into_iter().filter(is).collect()
}
