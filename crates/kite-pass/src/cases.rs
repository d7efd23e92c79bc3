//! What is counted, case by case.
//!
//! A settled pass is run once before it is counted, as a process does when it starts: what is set up
//! once and kept is no cost of a pass.

use std::hint::black_box;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use futures::FutureExt as _;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kite_api::claim::KiteHostClaimSpec;
use kite_api::user::KiteUserSpec;
use kite_api::{KiteHostClaim, KitePlatform, KiteUser, KiteVirtualMachine};
use kite_kubevirt::VirtualMachine;
use kite_render::hash::hash;
use kite_render::machine::{
    Hardware, KeyPair, Login, cloud_init, data_volume, host_claim, ingress, run_strategy, service,
    virtual_machine,
};
use kite_render::validate::{MachineOwner, ValidMachine, ValidPlatform};
use kite_runtime::{Cache, Next, Pass};
use kite_vm::controller::World;
use kite_vm::reconcile::VmPass;
use tokio::runtime::Runtime;

use crate::callgrind;
use crate::recorded::{PLAIN, Recorded, WEB, key};
use crate::region;
use crate::server::Line;
use crate::worlds;

/// How many others there are in the case with neighbours.
const USERS: usize = 1000;
const MACHINES: usize = 10_000;

/// A pass that changes nothing: the most, and the aim.
const SETTLED: Option<(u64, u64)> = Some((150_000, 50_000));
/// Everything that one machine needs, rendered and hashed: the most, and the aim.
const RENDERED: Option<(u64, u64)> = Some((1_000_000, 300_000));

/// One case.
pub(crate) struct Case {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What it is, for people.
    pub(crate) about: &'static str,
    /// The most instructions it may take, and what is aimed at.
    pub(crate) bounds: Option<(u64, u64)>,
    run: fn(&Runtime, &Arc<Recorded>) -> Result<()>,
}

/// Ends the name of a case in which objects are kept as they are, and not packed.
const WHOLE: &str = "-whole";

/// All cases, in the order in which they are told.
pub(crate) const CASES: [Case; 11] = [
    Case {
        name: "vm-settled",
        about: "kite-vm: a pass that changes nothing",
        bounds: SETTLED,
        run: |runtime, recorded| settled_vm(runtime, recorded, PLAIN, |_| Ok(())),
    },
    Case {
        name: "vm-settled-whole",
        about: "the same, had its objects not to be unpacked",
        bounds: None,
        run: |runtime, recorded| settled_vm(runtime, recorded, PLAIN, |_| Ok(())),
    },
    Case {
        name: "vm-settled-domain",
        about: "the same, of a machine with a host name",
        bounds: SETTLED,
        run: |runtime, recorded| settled_vm(runtime, recorded, WEB, |_| Ok(())),
    },
    Case {
        name: "vm-settled-crowd",
        about: "the same, among 1,000 users and 10,000 machines with host names",
        bounds: SETTLED,
        run: |runtime, recorded| settled_vm(runtime, recorded, WEB, crowd),
    },
    Case {
        name: "vm-status-settled",
        about: "kite-vm-status: a pass that changes nothing",
        bounds: SETTLED,
        run: |runtime, recorded| {
            settled(
                runtime,
                recorded,
                |line| worlds::vm_status(recorded, line),
                PLAIN,
            )
        },
    },
    Case {
        name: "service-settled",
        about: "kite-service: a pass that changes nothing",
        bounds: SETTLED,
        run: |runtime, recorded| {
            settled(
                runtime,
                recorded,
                |line| worlds::service(recorded, line),
                PLAIN,
            )
        },
    },
    Case {
        name: "datavolume-settled",
        about: "kite-datavolume: a pass that changes nothing",
        bounds: SETTLED,
        run: |runtime, recorded| {
            settled(
                runtime,
                recorded,
                |line| worlds::datavolume(recorded, line),
                PLAIN,
            )
        },
    },
    Case {
        name: "validate",
        about: "the specification of a machine, checked",
        bounds: None,
        run: |_, recorded| validated(recorded),
    },
    Case {
        name: "render",
        about: "all children of a machine with a host name, rendered and hashed",
        bounds: RENDERED,
        run: |_, recorded| rendered(recorded),
    },
    Case {
        name: "vm-create",
        about: "kite-vm: the two passes that make a machine with a host name, key pair, bodies and answers included, sockets and TLS not",
        bounds: None,
        run: created,
    },
    Case {
        name: "key-pair",
        about: "an SSH key pair, of which the case above has one",
        bounds: None,
        run: |_, recorded| key_pair(recorded),
    },
];

/// Runs a case, in a process that is being counted.
pub(crate) fn run(name: &str) -> Result<()> {
    if name == callgrind::CALIBRATION {
        region::counted(&mut allocate);
        return Ok(());
    }
    let case = CASES.iter().find(|case| case.name == name);
    let case = case.with_context(|| format!("there is no case {name}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    (case.run)(&runtime, &Arc::new(Recorded::load(!name.ends_with(WHOLE))?))
}

/// Asks for memory a known number of times, in each of the ways in which Rust does.
fn allocate() {
    for _ in 0..callgrind::CALLS {
        black_box(vec![0_u8; black_box(64)]);
        let mut grown: Vec<u8> = Vec::with_capacity(black_box(8));
        grown.push(black_box(1));
        grown.reserve_exact(black_box(64));
        black_box(grown);
    }
}

fn settled_vm(
    runtime: &Runtime,
    recorded: &Arc<Recorded>,
    name: &str,
    prepare: fn(&mut World) -> Result<()>,
) -> Result<()> {
    settled(
        runtime,
        recorded,
        |line| worlds::vm(recorded, line, prepare),
        name,
    )
}

/// A pass that must send nothing, not even wait for anything.
fn settled<P: Pass>(
    runtime: &Runtime,
    recorded: &Arc<Recorded>,
    build: impl FnOnce(&Line) -> Result<P>,
    name: &str,
) -> Result<()>
where
    P::Error: Send + Sync + 'static,
{
    let _entered = runtime.enter();
    let line = Line::new(Arc::clone(recorded));
    let pass = build(&line)?;
    let first = pass
        .pass(key(name))
        .now_or_never()
        .context("the pass waits for something")?;
    first?;
    let second = region::count(|| pass.pass(key(name)).now_or_never());
    second.flatten().context("the second pass waits")??;
    ensure!(
        line.sent() == 0,
        "a settled pass has sent {} requests",
        line.sent()
    );
    Ok(())
}

/// Makes the world as full as it is expected to be at most.
fn crowd(world: &mut World) -> Result<()> {
    for i in 0..USERS {
        let spec = KiteUserSpec {
            namespace: format!("tenant-{i}"),
            ..world_user(world)?.spec
        };
        world
            .users
            .remember(KiteUser::new(&format!("tenant-{i}"), spec));
    }
    for i in 0..MACHINES {
        let uid = format!("00000000-0000-0000-0000-{i:012}");
        let spec = KiteHostClaimSpec {
            namespace: format!("tenant-{}", i % USERS),
            name: "web".into(),
            uid,
        };
        world.hosts.remember(KiteHostClaim::new(
            &format!("host-{i}.vms.example.org"),
            spec,
        ));
    }
    Ok(())
}

fn world_user(world: &World) -> Result<KiteUser> {
    let user = world
        .users
        .all()
        .into_iter()
        .next()
        .context("no user was recorded")?;
    Ok(user.as_ref().clone())
}

fn validated(recorded: &Recorded) -> Result<()> {
    let machine: KiteVirtualMachine = recorded.one(WEB)?;
    let platform = ValidPlatform::parse(&recorded.one::<KitePlatform>("default")?.spec)?;
    let valid = region::count(|| ValidMachine::parse(&machine, &platform));
    ensure!(
        valid.is_some_and(|v| v.is_ok()),
        "the recorded machine is refused"
    );
    Ok(())
}

fn rendered(recorded: &Recorded) -> Result<()> {
    let machine: KiteVirtualMachine = recorded.one(WEB)?;
    let live: VirtualMachine = recorded.one(WEB)?;
    let platform = ValidPlatform::parse(&recorded.one::<KitePlatform>("default")?.spec)?;
    let valid = ValidMachine::parse(&machine, &platform)?;
    let keys = [KeyPair::generate(&valid.owner)?.public()?];
    let login = Login {
        keys: &keys,
        password: None,
    };
    let prefix = valid
        .domain_prefix
        .as_ref()
        .context("no prefix was recorded")?;
    let host = platform
        .host(prefix)
        .context("no base domain was recorded")??;
    let hardware = Hardware {
        limits: &platform.limits,
        memory_grows: true,
        live: Some(&live),
        login_hash: "0123456789abcdef",
    };
    let all = || -> Result<[String; 6]> {
        let strategy = run_strategy(valid.power, valid.on_guest_shutdown);
        let owner = &valid.owner;
        Ok([
            hash(&cloud_init(&valid, &login)?)?,
            hash(&data_volume(&valid, &platform, None))?,
            hash(&virtual_machine(&valid, strategy, &hardware))?,
            hash(&service(owner))?,
            hash(&host_claim(owner, &host))?,
            hash(&ingress(owner, &host, &platform))?,
        ])
    };
    region::count(all).context("nothing was rendered")??;
    Ok(())
}

/// From an empty namespace to a VirtualMachine, in the two passes that it takes: CDI makes the claim
/// between them.
fn created(runtime: &Runtime, recorded: &Arc<Recorded>) -> Result<()> {
    let _entered = runtime.enter();
    let line = Line::new(Arc::clone(recorded));
    let pass = worlds::vm(recorded, &line, |world| {
        let mut machine: KiteVirtualMachine = recorded.one(WEB)?;
        machine.status = None;
        machine.metadata.finalizers = None;
        world.machines.remember(machine);
        world.vms = Cache::new(|_| 0);
        world.vmis = Cache::new(|_| 0);
        world.disks = Cache::new(|_| 0);
        world.claims = Cache::new(|_| 0);
        world.services = Cache::new(|_| 0);
        world.ingresses = Cache::new(|_| 0);
        world.hosts = Cache::new(|_| 0);
        Ok(())
    })?;
    let first = region::count(|| run_pass(runtime, &pass)).context("nothing ran")?;
    ensure!(
        matches!(first?, Next::Within(_)),
        "the first pass does not wait for the claim"
    );
    let before = line.sent();
    pass.world
        .claims
        .remember(recorded.one::<PersistentVolumeClaim>(WEB)?);
    let second = region::count(|| run_pass(runtime, &pass)).context("nothing ran")?;
    second?;
    let sent = (before, line.sent() - before);
    ensure!(sent == (7, 2), "other requests than expected: {sent:?}");
    Ok(())
}

fn run_pass(runtime: &Runtime, pass: &VmPass) -> Result<Next> {
    Ok(runtime.block_on(pass.pass(key(WEB)))?)
}

fn key_pair(recorded: &Recorded) -> Result<()> {
    let owner = MachineOwner::of(&recorded.one::<KiteVirtualMachine>(WEB)?)?;
    region::count(|| KeyPair::generate(&owner)).context("nothing ran")??;
    Ok(())
}
