//! The ResourceQuota of a user's namespace (rule U-6).
//!
//! The user's quota speaks of machines: virtual CPUs, guest memory, disks. A
//! ResourceQuota speaks of pods and claims, and a machine needs more of them than
//! its owner sees. With `n` machines, of which the largest allowed one is `max`:
//!
//! | Key | Limit |
//! |---|---|
//! | `count/kitevirtualmachines.kite.dev` | `n` |
//! | `requests.cpu` | (cpu + max.cpu) / ratio, and for each launcher 1m of rounding and 10m for its console log; 200m for each clone |
//! | `requests.memory` | memory + max.memory, and for each launcher the overhead below; 128Mi for each clone |
//! | `requests.storage` | 1.06 × (storage + clones × max.disk), and a byte of rounding for each claim |
//! | `persistentvolumeclaims` | n + clones |
//!
//! There are `n + 1` launchers, since one machine may be migrating and then has
//! two. The overhead is 452Mi for each launcher, 8Mi for each virtual CPU and 1/128
//! of the memory. `max` is the platform's largest machine, or the whole quota if
//! that is less. `clones` is how many disks are filled at a time: each then has a
//! second claim. Where `n` is not given it is bounded by the other numbers, which
//! is safe and not sharp; give `virtualMachines` and `cpu` for a sharp limit.
//!
//! Nothing is said of limits (`limits.*`): a user may ask for those by `hard`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ResourceQuota, ResourceQuotaSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::meta::{Component, bound_to_user};
use crate::validate::{Bytes, ValidPlatform, ValidQuota, ValidUser};

/// Name of the ResourceQuota.
pub const QUOTA: &str = "kite-quota";
/// The key that counts machines.
pub const COUNT_KEY: &str = "count/kitevirtualmachines.kite.dev";

/// What KubeVirt adds to the memory of every launcher: 220Mi for its processes, 8Mi for an I/O
/// thread, 32Mi of video memory, 128Mi for the firmware on arm64; and 64Mi for the console log's
/// container. Values of KubeVirt 1.9 or above.
const LAUNCHER_MEMORY: i64 = 452 << 20;
/// What KubeVirt adds for each virtual CPU.
const VCPU_MEMORY: i64 = 8 << 20;
/// KubeVirt adds 1/512 of the memory for page tables; four times that, since a guest may grow fourfold.
const PAGE_TABLES: i64 = 128;
/// The processor time of the console log's container (5m today), doubled.
const CONSOLE_MILLI_CPU: i64 = 10;
/// CDI's workers request 100m and 60M each; two of a clone can stand in the user's namespace at once.
const CLONE_MILLI_CPU: i64 = 200;
const CLONE_MEMORY: i64 = 128 << 20;
/// CDI asks for 6 % more than a disk's size, for the file system under it.
const INFLATION_PERCENT: i64 = 106;
/// The least machine and disk that the schema allows: they bound the number of machines that is not given.
const LEAST_MEMORY: i64 = 32 << 20;
const LEAST_DISK: i64 = 64 << 20;

/// The quota of the user's namespace, if there is one. `clones` is how many disks may be filled at a time.
pub fn resource_quota(
    user: &ValidUser,
    platform: &ValidPlatform,
    clones: i64,
) -> Option<ResourceQuota> {
    let quota = user.quota.as_ref()?;
    let hard = hard(quota, platform, clones);
    (!hard.is_empty()).then(|| render(user, hard))
}

/// The same quota with room for no machine at all: what stands while the user goes (rule U-10).
/// A user without a quota gets one for this.
pub fn closing_quota(user: &ValidUser, platform: &ValidPlatform, clones: i64) -> ResourceQuota {
    let quota = user.quota.as_ref();
    let mut hard = quota.map(|q| hard(q, platform, clones)).unwrap_or_default();
    hard.insert(COUNT_KEY.to_owned(), Quantity("0".to_owned()));
    render(user, hard)
}

fn render(user: &ValidUser, hard: BTreeMap<String, Quantity>) -> ResourceQuota {
    ResourceQuota {
        metadata: bound_to_user(
            &user.owner,
            &user.namespace,
            QUOTA.to_owned(),
            Component::Quota,
        ),
        spec: Some(ResourceQuotaSpec {
            hard: Some(hard),
            ..ResourceQuotaSpec::default()
        }),
        status: None,
    }
}

/// The limits by key. Sums stop at the largest number there is, which Kubernetes reads as no limit.
fn hard(quota: &ValidQuota, platform: &ValidPlatform, clones: i64) -> BTreeMap<String, Quantity> {
    let clones = clones.max(1);
    let mut hard = quota.hard.clone();
    let mut set = |key: &str, text: String| hard.insert(key.to_owned(), Quantity(text));
    if let Some(machines) = quota.machines {
        set(COUNT_KEY, machines.to_string());
        set(
            "persistentvolumeclaims",
            machines.saturating_add(clones).to_string(),
        );
    }
    if let Some(cpu) = quota.cpu {
        set(
            "requests.cpu",
            milli_text(milli_cpu(quota, platform, cpu, clones)),
        );
    }
    if let Some(memory) = quota.memory {
        set(
            "requests.memory",
            memory_limit(quota, platform, memory.get(), clones).to_string(),
        );
    }
    if let Some(storage) = quota.storage {
        set(
            "requests.storage",
            storage_limit(quota, platform, storage.get(), clones).to_string(),
        );
    }
    hard
}

/// The most machines that the quota lets be. One that bounds nothing has no computed key either.
fn most_machines(quota: &ValidQuota) -> i64 {
    let by_memory = quota.memory.map(|m| m.get() / LEAST_MEMORY);
    let by_storage = quota.storage.map(|s| s.get() / LEAST_DISK);
    let bounds = [quota.machines, quota.cpu, by_memory, by_storage];
    bounds.into_iter().flatten().min().unwrap_or_default()
}

fn milli_cpu(quota: &ValidQuota, platform: &ValidPlatform, cpu: i64, clones: i64) -> i64 {
    let launchers = most_machines(quota) + 1;
    let virtual_cpus = cpu.saturating_add(cpu.min(platform.limits.cpu));
    let guests = virtual_cpus.saturating_mul(1000) / platform.cpu_allocation_ratio.max(1) + 1;
    guests
        .saturating_add(launchers.saturating_mul(CONSOLE_MILLI_CPU + 1))
        .saturating_add(clones.saturating_mul(CLONE_MILLI_CPU))
}

fn memory_limit(quota: &ValidQuota, platform: &ValidPlatform, memory: i64, clones: i64) -> Bytes {
    let launchers = most_machines(quota) + 1;
    let largest_cpu = platform.limits.cpu;
    let virtual_cpus = match quota.cpu {
        Some(cpu) => cpu.saturating_add(cpu.min(largest_cpu)),
        None => launchers.saturating_mul(largest_cpu),
    };
    let guests = memory.saturating_add(memory.min(platform.limits.memory.get()));
    let sum = guests
        .saturating_add(guests / PAGE_TABLES)
        // Each launcher's page tables may be rounded up by themselves.
        .saturating_add(launchers.saturating_mul(LAUNCHER_MEMORY + 1))
        .saturating_add(virtual_cpus.saturating_mul(VCPU_MEMORY))
        .saturating_add(clones.saturating_mul(CLONE_MEMORY));
    up_to_mebibytes(sum)
}

fn storage_limit(quota: &ValidQuota, platform: &ValidPlatform, storage: i64, clones: i64) -> Bytes {
    let largest = storage.min(platform.limits.disk.get());
    let disks = storage.saturating_add(clones.saturating_mul(largest));
    // In two steps, since the product could overflow.
    let inflated = disks.saturating_add((disks / 100 + 1).saturating_mul(INFLATION_PERCENT - 100));
    let claims = most_machines(quota).saturating_add(clones);
    up_to_mebibytes(inflated.saturating_add(claims))
}

/// Whole mebibytes read better, and more is never too little.
fn up_to_mebibytes(bytes: i64) -> Bytes {
    let mebibyte = 1 << 20;
    match bytes % mebibyte {
        0 => Bytes::new(bytes),
        rest => Bytes::new(bytes.saturating_add(mebibyte - rest)),
    }
}

/// Milli-CPUs as Kubernetes writes them.
fn milli_text(milli: i64) -> String {
    if milli % 1000 == 0 {
        (milli / 1000).to_string()
    } else {
        format!("{milli}m")
    }
}
