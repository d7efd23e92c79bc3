//! Whether a user's quota lets in what it promises, by the server's own quota
//! admission: real Pods and claims that ask for what KubeVirt and CDI ask for.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, ServiceAccount};
use kite_api::KiteVirtualMachine;
use kite_testkit::wait::wait_until;
use kube::api::PostParams;
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::*;

/// A machine, as its owner counts: virtual CPUs, guest memory in MiB, disk in GiB.
#[derive(Clone, Copy)]
struct Machine(u64, u64, u64);

impl Machine {
    fn object(self, name: &str) -> Value {
        let Self(cpu, memory, disk) = self;
        json!({"apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine", "metadata": {"name": name},
            "spec": {"cpu": cpu, "memory": format!("{memory}Mi"), "disk": format!("{disk}Gi"), "image": "ubuntu"}})
    }

    /// The launcher as KubeVirt makes it on arm64, where its overhead is largest: a tenth of a CPU
    /// for each virtual one; processes, I/O thread, video memory and firmware, page tables, and
    /// 8Mi for each virtual CPU; and the container that keeps the guest's console log.
    fn launcher(self, name: &str) -> Value {
        let Self(cpu, memory, _) = self;
        let overhead = (220 + 8 + 32 + 128 + 8 * cpu) * 1024 + memory * 1024 / 512;
        let memory = format!("{}Ki", memory * 1024 + overhead);
        json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("virt-launcher-{name}"), "labels": {"kubevirt.io": "virt-launcher"}},
        "spec": {"containers": [
            container("compute", &format!("{}m", cpu * 100), &memory),
            container("guest-console-log", "5m", "64Mi"),
        ]}})
    }

    /// The claim as CDI asks for it: with 6 % for the file system.
    fn claim(self, name: &str) -> Value {
        let bytes = (self.2 << 30) * 106 / 100 + 1;
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": bytes.to_string()}}}})
    }
}

fn container(name: &str, cpu: &str, memory: &str) -> Value {
    json!({"name": name, "image": "none", "resources": {"requests": {"cpu": cpu, "memory": memory}}})
}

/// One of CDI's workers.
fn worker(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [container("cdi", "100m", "60M")]}})
}

/// A user's namespace into which somebody puts machines.
struct Space {
    admin: Admin,
    name: String,
}

impl Space {
    async fn of(name: &str, quota: Value) -> Self {
        let admin = Admin::new(world().await.plane).await;
        admin
            .ready_user(name, json!({"namespace": name, "quota": quota}))
            .await;
        let accounts: Api<ServiceAccount> = Api::namespaced(admin.client.clone(), name);
        wait_until(&accounts, "default", LIMIT, |_| true)
            .await
            .unwrap();
        Self {
            admin,
            name: name.to_owned(),
        }
    }

    async fn create<K>(&self, object: Value) -> Result<K, kube::Error>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + Serialize
            + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.admin.client.clone(), &self.name);
        let object = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await
    }

    /// The server's words when it refuses for the quota.
    async fn refused<K>(&self, object: Value) -> String
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + Serialize
            + DeserializeOwned,
    {
        let words = self.create::<K>(object).await.unwrap_err().to_string();
        assert!(words.contains("exceeded quota: kite-quota"), "{words}");
        words
    }

    /// All machines run; the largest of them migrates, and its disk is being filled a second time.
    async fn holds(&self, machines: &[Machine]) {
        for (i, machine) in machines.iter().enumerate() {
            let name = format!("m{i}");
            self.create::<KiteVirtualMachine>(machine.object(&name))
                .await
                .unwrap();
            self.create::<PersistentVolumeClaim>(machine.claim(&name))
                .await
                .unwrap();
            self.create::<Pod>(machine.launcher(&name)).await.unwrap();
        }
        let largest = machines.iter().max_by_key(|machine| machine.1).unwrap();
        self.create::<Pod>(largest.launcher("migrating"))
            .await
            .unwrap();
        self.create::<PersistentVolumeClaim>(largest.claim("tmp-pvc"))
            .await
            .unwrap();
        for name in ["cdi-upload", "cdi-clone-source"] {
            self.create::<Pod>(worker(name)).await.unwrap();
        }
    }
}

// U-6, #10, #24: what is promised fits, with one machine migrating and one clone in flight; one more does not.
#[tokio::test]
async fn as_many_machines_as_promised_fit_and_not_one_more() {
    let quota = json!({"cpu": 8, "memory": "16Gi", "storage": "100Gi", "virtualMachines": 4});
    for (name, machines) in [
        ("fits-equal", [Machine(2, 4096, 25); 4]),
        (
            "fits-unequal",
            [
                Machine(5, 13 * 1024, 70),
                Machine(1, 1024, 10),
                Machine(1, 1024, 10),
                Machine(1, 1024, 10),
            ],
        ),
    ] {
        let space = Space::of(name, quota.clone()).await;
        space.holds(&machines).await;
        let small = Machine(1, 32, 1);
        let words = space
            .refused::<KiteVirtualMachine>(small.object("more"))
            .await;
        assert!(
            words.contains("count/kitevirtualmachines.kite.dev=4"),
            "{words}"
        );
        let words = space
            .refused::<PersistentVolumeClaim>(small.claim("more"))
            .await;
        assert!(words.contains("persistentvolumeclaims=5"), "{words}");
    }
}

// U-6, #31, SE12: a quota that is just one machine is enough for that machine, and for none beside it.
#[tokio::test]
async fn a_quota_of_exactly_one_machine_lets_it_start_and_migrate() {
    let quota = json!({"cpu": 2, "memory": "1Gi", "storage": "10Gi", "virtualMachines": 1});
    let space = Space::of("fits-one", quota).await;
    let machine = Machine(2, 1024, 10);
    space.holds(&[machine]).await;
    let words = space
        .refused::<KiteVirtualMachine>(machine.object("more"))
        .await;
    assert!(words.contains("count/kitevirtualmachines"), "{words}");
    let words = space.refused::<Pod>(machine.launcher("more")).await;
    assert!(words.contains("requests.memory"), "{words}");
    let words = space
        .refused::<PersistentVolumeClaim>(machine.claim("more"))
        .await;
    assert!(words.contains("requests.storage"), "{words}");
}
