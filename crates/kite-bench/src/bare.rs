//! The bare client: the least writes with which a machine's owner sees what Kite shows, sent as
//! fast as the server takes them.
//!
//! It decides nothing, compares nothing and repairs nothing. It is told of each machine by who
//! made it, and has two watches, of VirtualMachines and of DataVolumes, because what is mirrored
//! cannot be written before it is there. It writes no events. Nobody could be faster on the same
//! server with the same writes; how near it is to a plain loop of the same requests is printed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use futures::StreamExt as _;
use futures::future::join_all;
use http::Method;
use kite_api::labels::Controller;
use kite_api::machine::Phase;
use kite_kubevirt::read::{DataVolume, VirtualMachine};
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::bystander::follow;
use crate::load::{AT_ONCE, Made, Name};
use crate::mould::{Mould, Request, disk_part, power_part};

/// Between two writes of progress, at life's own speed: as Kite's own default.
pub const TICKS: Duration = Duration::from_secs(10);

/// What became of a machine's own objects.
#[derive(Clone, Default)]
struct Told {
    disk: watch::Sender<Option<DataVolume>>,
    vm: watch::Sender<Option<VirtualMachine>>,
}

type Telling = Arc<Mutex<HashMap<Name, Told>>>;

/// The bare client while it runs. Dropping it ends it.
pub struct Bare {
    sender: Sender,
    telling: Telling,
    mould: Arc<Mould>,
    between: Duration,
    watches: [JoinHandle<()>; 2],
}

impl Drop for Bare {
    fn drop(&mut self) {
        for watch in &self.watches {
            watch.abort();
        }
    }
}

/// The bare client's two accounts.
#[derive(Clone)]
pub struct Clients {
    /// Its own.
    pub own: Client,
    /// kite-vm's, for status: the admission policies let nobody else write it.
    pub status: Client,
}

/// Sends requests, a bounded number at a time, and counts them.
#[derive(Clone)]
pub struct Sender {
    clients: Clients,
    slots: Arc<Semaphore>,
    sent: Arc<Mutex<Sent>>,
}

/// What was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Requests that were answered as wished.
    pub good: usize,
    /// Those that were not.
    pub refused: usize,
}

impl Sender {
    /// Nothing sent yet.
    pub fn new(clients: &Clients) -> Self {
        Self {
            clients: clients.clone(),
            slots: Arc::new(Semaphore::new(AT_ONCE)),
            sent: Arc::default(),
        }
    }

    /// What was sent so far.
    pub fn sent(&self) -> Sent {
        *lock(&self.sent)
    }

    /// Applies an object.
    pub async fn apply(&self, request: Request) {
        let path = format!("{}?fieldManager=bare&force=true", request.path);
        self.send(
            &self.clients.own,
            path,
            "application/apply-patch+yaml",
            request.body,
        )
        .await;
    }

    /// Puts Kite's finalizer on a machine.
    pub async fn finalizer(&self, name: &Name) {
        let body = json!({"metadata": {"finalizers": [kite_api::labels::VM_FINALIZER]}});
        let path = format!("{}?fieldManager=bare", machine(name));
        self.send(
            &self.clients.own,
            path,
            "application/merge-patch+json",
            body.to_string(),
        )
        .await;
    }

    /// Applies a part of a machine's status.
    pub async fn status(&self, name: &Name, who: Controller, part: &Value) {
        let body = json!({
            "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
            "metadata": {"name": name.name}, "status": part,
        });
        let path = machine(name);
        let path = format!("{path}/status?fieldManager=bare-{}&force=true", who.name());
        self.send(
            &self.clients.status,
            path,
            "application/apply-patch+yaml",
            body.to_string(),
        )
        .await;
    }

    async fn send(&self, client: &Client, path: String, content: &'static str, body: String) {
        // The semaphore is never closed.
        let Ok(_slot) = self.slots.acquire().await else {
            return;
        };
        let request = http::Request::builder()
            .method(Method::PATCH)
            .uri(&path)
            .header(http::header::CONTENT_TYPE, content)
            .body(body.into_bytes());
        let good = match request {
            Ok(request) => client.request_text(request).await.map_err(Into::into),
            Err(error) => Err(anyhow::Error::from(error)),
        };
        let mut sent = lock(&self.sent);
        match good {
            Ok(_) => sent.good += 1,
            Err(error) => {
                sent.refused += 1;
                if sent.refused == 1 {
                    println!("the bare client was refused at {path}: {error:#}");
                }
            }
        }
    }
}

fn machine(name: &Name) -> String {
    format!(
        "/apis/kite.dev/v1alpha1/namespaces/{}/kitevirtualmachines/{}",
        name.namespace, name.name
    )
}

impl Bare {
    /// Starts its watches. `between` is the time between two writes of progress.
    pub async fn start(clients: &Clients, mould: Arc<Mould>, between: Duration) -> Self {
        let telling = Telling::default();
        let (of_disks, of_vms) = (Arc::clone(&telling), Arc::clone(&telling));
        let disks = follow(&clients.own, move |name, disk: &DataVolume| {
            if let Some(told) = lock(&of_disks).get(&name) {
                told.disk.send_replace(Some(disk.clone()));
            }
        });
        let vms = follow(&clients.own, move |name, vm: &VirtualMachine| {
            if let Some(told) = lock(&of_vms).get(&name) {
                told.vm.send_replace(Some(vm.clone()));
            }
        });
        let watches = [disks.await, vms.await];
        Self {
            sender: Sender::new(clients),
            telling,
            mould,
            between,
            watches,
        }
    }

    /// What was sent so far.
    pub fn sent(&self) -> Sent {
        self.sender.sent()
    }

    /// Begins the life of a machine that was just made.
    pub fn live(&self, made: &Made) {
        let told = Told::default();
        lock(&self.telling).insert(made.name.clone(), told.clone());
        let life = Life {
            sender: self.sender.clone(),
            mould: Arc::clone(&self.mould),
            made: made.clone(),
            between: self.between,
        };
        tokio::spawn(life.run(told));
    }
}

/// One machine's life as the bare client leads it.
struct Life {
    sender: Sender,
    mould: Arc<Mould>,
    made: Made,
    between: Duration,
}

impl Life {
    async fn run(self, told: Told) {
        let (sender, name) = (&self.sender, &self.made.name);
        sender.finalizer(name).await;
        let children = self.mould.children_of(&self.made);
        join_all(children.into_iter().map(|child| sender.apply(child))).await;
        self.status(Controller::Vm).await;
        tokio::join!(
            self.status(Controller::Service),
            self.mirror_disk(told.disk.subscribe()),
            self.mirror_power(told.vm.subscribe()),
        );
    }

    async fn status(&self, who: Controller) {
        let part = self.mould.part(who, &self.made);
        self.sender.status(&self.made.name, who, &part).await;
    }

    /// Each phase at once, progress at the leading edge and then at intervals.
    async fn mirror_disk(&self, mut changes: watch::Receiver<Option<DataVolume>>) {
        let who = Controller::DataVolume;
        let part = self.mould.part(who, &self.made);
        let mut written: Option<DataVolume> = None;
        loop {
            let now = changes.borrow_and_update().clone();
            if let Some(disk) = now.filter(|disk| !disk.phase().is_empty()) {
                let same = |w: &DataVolume| progress(w) == progress(&disk);
                if !written.as_ref().is_some_and(same) {
                    let body = disk_part(part.clone(), &disk);
                    self.sender.status(&self.made.name, who, &body).await;
                }
                if disk.phase() == "Succeeded" {
                    return;
                }
                let phase = disk.phase().to_owned();
                written = Some(disk);
                let other = |d: &Option<DataVolume>| d.as_ref().is_some_and(|d| d.phase() != phase);
                // Either another phase, or the end of the interval.
                let another = changes.wait_for(other);
                if tokio::time::timeout(self.between, another).await.is_ok() {
                    continue;
                }
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    async fn mirror_power(&self, mut changes: watch::Receiver<Option<VirtualMachine>>) {
        let who = Controller::VmStatus;
        let part = self.mould.part(who, &self.made);
        for (word, phase) in [
            ("", Phase::Provisioning),
            ("Starting", Phase::Starting),
            ("Running", Phase::Running),
        ] {
            let reached = |vm: &Option<VirtualMachine>| {
                vm.as_ref().is_some_and(|vm| {
                    let status = vm.status.as_ref();
                    let shown = status.and_then(|s| s.printable_status.as_deref());
                    word.is_empty() || shown == Some(word) || shown == Some("Running")
                })
            };
            let Ok(vm) = changes.wait_for(reached).await.map(|vm| vm.clone()) else {
                return;
            };
            if let Some(vm) = vm {
                let body = power_part(part.clone(), phase, &vm);
                self.sender.status(&self.made.name, who, &body).await;
            }
        }
        // The guest has an address now, so the Service has an endpoint.
        self.status(Controller::Service).await;
    }
}

fn progress(disk: &DataVolume) -> (String, Option<String>) {
    let status = disk.status.as_ref();
    let progress = status.and_then(|status| status.progress.clone());
    (disk.phase().to_owned(), progress)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends what the bare client sends for each machine, in a plain loop without order, watch or
/// wait. Returns how long it took.
pub async fn raw(clients: &Clients, mould: &Mould, made: &[Made]) -> Result<(Duration, Sent)> {
    let sender = Sender::new(clients);
    let began = std::time::Instant::now();
    let children = made.iter().flat_map(|made| mould.children_of(made));
    futures::stream::iter(children)
        .for_each_concurrent(AT_ONCE, |child| sender.apply(child))
        .await;
    Ok((began.elapsed(), sender.sent()))
}
