//! What holds for every specification that is accepted.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::collections::BTreeSet;

use common::{hardware, platform, raw_machine, raw_user, value};
use kite_api::{KiteUser, KiteVirtualMachine};
use kite_render::machine::{
    Login, Password, USER_DATA, cloud_init, cloud_init_name, data_volume, host_claim, ingress,
    run_strategy, service, ssh_key_name, virtual_machine,
};
use kite_render::user::{
    limit_range, namespace, network_policies, resource_quota, tenant_role_binding,
};
use kite_render::validate::{
    CryptHash, SshPublicKey, ValidMachine, ValidPlatform, ValidQuota, ValidUser,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Text as a user may try it: sometimes good, often not.
fn text() -> impl Strategy<Value = String> {
    let nasty = prop::sample::select(vec![
        "a: b",
        "x\nruncmd: [reboot]",
        "---",
        "{{x}}",
        "${x}",
        "\"",
        "'",
        "#",
        "\t",
        "\0",
        "- a",
        "&a",
        "*a",
        "!!x",
        "|",
        ">",
        "%",
        "@",
        "`",
        "a\u{202e}b",
        "\u{85}",
        "~",
        "null",
        "yes",
        "1e3",
        "0x1",
    ]);
    prop_oneof![
        12 => "[a-z][a-z0-9-]{0,20}[a-z0-9]",
        1 => nasty.prop_map(str::to_owned),
        1 => ".{0,40}",
    ]
}

fn key() -> impl Strategy<Value = String> {
    let good = common::KEY.rsplit_once(' ').unwrap().0;
    prop_oneof![
        9 => text().prop_map(move |comment| format!("{good} {comment}")),
        1 => text(),
    ]
}

fn raw() -> impl Strategy<Value = KiteVirtualMachine> {
    let numbers = (
        0..68_i32,
        prop_oneof![9 => "[1-9][0-9]?Gi|[1-9][0-9]{2}Mi", 1 => ".{0,8}"],
        "[0-9]{1,3}(G|Gi)",
    );
    let power = (prop::bool::ANY, prop::bool::ANY, prop::bool::ANY);
    (
        numbers,
        text(),
        text(),
        text(),
        prop::option::of(text()),
        prop::collection::vec(key(), 0..4),
        power,
    )
        .prop_map(
            |((cpu, memory, disk), name, image, login, prefix, keys, (on, restart, retain))| {
                let mut machine = raw_machine();
                machine.metadata.name = Some(name);
                let mut spec = value(&machine.spec);
                spec["cpu"] = json!(cpu);
                spec["memory"] = json!(memory);
                spec["disk"] = json!(disk);
                spec["image"] = json!(image);
                spec["loginUser"] = json!(login);
                spec["sshAuthorizedKeys"] = json!(keys);
                spec["powerState"] = json!(if on { "On" } else { "Off" });
                spec["onGuestShutdown"] = json!(if restart { "Restart" } else { "StayOff" });
                spec["deletionPolicy"] = json!(if retain { "Retain" } else { "Delete" });
                spec["domainPrefix"] = json!(prefix);
                machine.spec = serde_json::from_value(spec).unwrap();
                machine
            },
        )
}

/// Every child of a machine, by name.
fn children(machine: &ValidMachine, platform: &ValidPlatform) -> Vec<Value> {
    let login = Login {
        keys: &machine.ssh_keys,
        password: None,
    };
    let strategy = run_strategy(machine.power, machine.on_guest_shutdown);
    let mut out = vec![
        value(&cloud_init(machine, &login).unwrap()),
        value(&data_volume(
            machine,
            platform,
            machine.storage_class.as_ref(),
        )),
        value(&virtual_machine(machine, strategy, &hardware(platform))),
        value(&service(&machine.owner)),
    ];
    if let Some(prefix) = &machine.domain_prefix {
        let host = platform.host(prefix).unwrap().unwrap();
        out.push(value(&ingress(&machine.owner, &host, platform)));
        out.push(value(&host_claim(&machine.owner, &host)));
    }
    out
}

fn keys(value: &Value, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                out.insert(key.clone());
                keys(value, out);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, out)),
        _ => {}
    }
}

fn all_keys(objects: &[Value]) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for object in objects {
        keys(object, &mut out);
    }
    out
}

/// The keys that children have whatever their machine says: those of one machine with all options.
fn known_keys() -> BTreeSet<String> {
    let mut machine = raw_machine();
    machine.spec.memory = "4Gi".into();
    let platform = platform();
    all_keys(&children(
        &ValidMachine::parse(&machine, &platform).unwrap(),
        &platform,
    ))
}

fn document(secret: &k8s_openapi::api::core::v1::Secret) -> (String, Map<String, Value>) {
    let text = String::from_utf8(secret.data.as_ref().unwrap()[USER_DATA].0.clone()).unwrap();
    let parsed = serde_saphyr::from_str(&text).unwrap();
    (text, parsed)
}

proptest! {
    // SE5, SE6, C-19, F-18
    #[test]
    fn whatever_is_accepted_renders_into_its_own_namespace_and_no_text_becomes_a_key(raw in raw()) {
        let platform = platform();
        let machine = ValidMachine::parse(&raw, &platform);
        prop_assume!(machine.is_ok());
        let machine = machine.unwrap();
        let children = children(&machine, &platform);
        let known = known_keys();
        let keys = all_keys(&children);
        prop_assert!(keys.is_subset(&known), "{:?}", keys.difference(&known));
        let mut names = BTreeSet::new();
        for child in &children {
            let meta = &child["metadata"];
            let name = meta["name"].as_str().unwrap();
            prop_assert!(name.len() <= 253);
            names.insert((child["kind"].as_str().unwrap().to_owned(), name.to_owned()));
            let claim = child["kind"] == "KiteHostClaim";
            prop_assert_eq!(meta["namespace"].as_str(), (!claim).then_some("alice"));
            prop_assert_eq!(&meta["annotations"]["kite.dev/vm-uid"], "22222222-2222-2222-2222-222222222222");
            // V-19: the disk never carries an owner reference; C-7: the others always do.
            let unowned = claim || child["kind"] == "DataVolume";
            prop_assert_eq!(meta.get("ownerReferences").is_none(), unowned);
            for label in meta["labels"].as_object().unwrap().values() {
                prop_assert!(label.as_str().unwrap().len() <= 63);
            }
        }
        prop_assert_eq!(names.len(), children.len());
        prop_assert_ne!(cloud_init_name(&machine.owner), ssh_key_name(&machine.owner));
    }

    // SE6, V-12
    #[test]
    fn cloud_init_reads_back_as_what_was_meant(raw in raw(), password in prop::bool::ANY) {
        let platform = platform();
        let machine = ValidMachine::parse(&raw, &platform);
        prop_assume!(machine.is_ok());
        let machine = machine.unwrap();
        let hash = CryptHash::parse(format!("$6$salt${}", "a".repeat(86)).as_bytes()).unwrap();
        let password = password.then_some(Password { hash: &hash, version: "1" });
        let login = Login { keys: &machine.ssh_keys, password };
        let secret = cloud_init(&machine, &login).unwrap();
        let (text, document) = document(&secret);
        prop_assert!(text.starts_with("#cloud-config\n"));
        let mut user = json!({
            "name": machine.login_user.as_str(), "sudo": "ALL=(ALL) NOPASSWD:ALL", "lock_passwd": password.is_none()
        });
        if password.is_some() {
            user["hashed_passwd"] = json!(hash.expose());
        }
        if !machine.ssh_keys.is_empty() {
            user["ssh_authorized_keys"] = machine.ssh_keys.iter().map(SshPublicKey::as_str).collect();
        }
        prop_assert_eq!(Value::Object(document), json!({"hostname": machine.owner.name.as_str(), "users": [user]}));
    }

    // C-5: the same input gives the same bytes, and equal amounts however written.
    #[test]
    fn rendering_is_deterministic(raw in raw()) {
        let platform = platform();
        let machine = ValidMachine::parse(&raw, &platform);
        prop_assume!(machine.is_ok());
        let machine = machine.unwrap();
        let again = ValidMachine::parse(&raw, &platform).unwrap();
        let bytes = |m: &ValidMachine| serde_json::to_string(&children(m, &platform)).unwrap();
        prop_assert_eq!(bytes(&machine), bytes(&again));
        let mut other = raw;
        let mebi = machine.memory.get() % (1 << 20) == 0;
        if mebi {
            other.spec.memory = format!("{}Mi", machine.memory.get() >> 20).as_str().into();
        }
        prop_assert_eq!(bytes(&machine), bytes(&ValidMachine::parse(&other, &platform).unwrap()));
    }

    // U-5, C-7 (b), C-19
    #[test]
    fn whatever_user_is_accepted_renders_and_nothing_of_it_is_owned(
        name in text(), subject in text(), address in any::<[u8; 4]>(), length in 0..34_u8,
    ) {
        let platform = platform();
        let mut spec = value(&raw_user());
        spec["spec"]["namespace"] = json!(name);
        spec["spec"]["subjects"][0]["name"] = json!(subject);
        spec["spec"]["network"]["extraEgress"][0]["cidr"] = json!(format!("{}/{length}", std::net::Ipv4Addr::from(address)));
        let raw: KiteUser = serde_json::from_value(spec).unwrap();
        let user = ValidUser::parse(&raw, &platform);
        prop_assume!(user.is_ok());
        let objects = user_objects(&user.unwrap(), &platform);
        prop_assert_eq!(objects.len(), 6);
        for object in &objects {
            let meta = &object["metadata"];
            prop_assert!(meta.get("ownerReferences").is_none());
            prop_assert!(meta["annotations"]["kite.dev/user-uid"].is_string());
            prop_assert_eq!(meta.get("namespace").or(meta.get("name")), Some(&json!(name)));
        }
        let known = all_keys(&user_objects(&common::user(), &platform));
        prop_assert_eq!(all_keys(&objects), known);
    }
}

/// Every child of a user but kite-vm's binding, which says nothing of the user's.
fn user_objects(user: &ValidUser, platform: &ValidPlatform) -> Vec<Value> {
    let [isolation, clone] = network_policies(user, platform);
    let mut objects = vec![value(&namespace(user)), value(&isolation), value(&clone)];
    objects.extend(resource_quota(user, platform, 1).iter().map(value));
    objects.extend(limit_range(user).iter().map(value));
    objects.extend(tenant_role_binding(user).iter().map(value));
    objects
}

/// One machine of a simulated user: virtual CPUs, memory, disk.
type Machine = (i64, i64, i64);

/// What KubeVirt asks for a launcher, after its own formula: see the table in `user::quota`.
fn launcher(machine: Machine, ratio: i64) -> (i64, i64) {
    let (cpu, memory, _) = machine;
    let milli = (cpu * 1000 + ratio - 1) / ratio + 5;
    let mebi = 1 << 20;
    let processes = (25 + 100 + 25 + 40 + 30 + 8 + 32 + 128 + 35) * mebi;
    (
        milli,
        memory + (memory + 511) / 512 + processes + 8 * mebi * cpu,
    )
}

fn limit(hard: &Value, key: &str) -> i128 {
    kite_api::quantity::milli(hard[key].as_str().unwrap()).unwrap()
}

proptest! {
    // U-6, SE12: any machines that fit the user's numbers fit the quota, with one migrating and a clone under way.
    #[test]
    fn the_quota_never_counts_too_little(
        machines in prop::collection::vec((1..64_i64, 32..65_536_i64, 64..1_000_000_i64), 1..12),
        ratio in 1..20_i32, clones in 1..4_i64, counted in prop::bool::ANY, spare in 0..3_i32, odd in 0..1024_i64,
    ) {
        let machines: Vec<Machine> = machines.into_iter().map(|(c, m, d)| (c, (m << 20) + odd, (d << 20) + odd)).collect();
        let sum = |f: fn(&Machine) -> i64| machines.iter().map(f).sum::<i64>();
        let (cpu, memory, storage) = (sum(|m| m.0), sum(|m| m.1), sum(|m| m.2));
        let count = i32::try_from(machines.len()).unwrap();
        let mut quota = json!({"cpu": cpu, "memory": memory.to_string(), "storage": storage.to_string()});
        if counted {
            quota["virtualMachines"] = json!(count + spare);
        }
        let mut raw = value(&raw_user());
        raw["spec"]["quota"] = quota;
        let mut spec = common::platform_spec();
        spec.cpu_allocation_ratio = ratio;
        let platform = ValidPlatform::parse(&spec).unwrap();
        let raw: KiteUser = serde_json::from_value(raw).unwrap();
        let user = ValidUser::parse(&raw, &platform).unwrap();
        let hard = value(&resource_quota(&user, &platform, clones).unwrap())["spec"]["hard"].clone();

        let ratio = i64::from(ratio);
        let launchers: Vec<_> = machines.iter().map(|m| launcher(*m, ratio)).collect();
        let used = |f: fn(&(i64, i64)) -> i64| launchers.iter().map(f).sum::<i64>() + launchers.iter().map(f).max().unwrap();
        prop_assert!(limit(&hard, "requests.cpu") >= i128::from(used(|l| l.0) + clones * 200));
        let workers = clones * 2 * 60_000_000;
        prop_assert!(limit(&hard, "requests.memory") >= i128::from(used(|l| l.1) + workers) * 1000);
        let inflate = |d: i64| (d * 106 + 99) / 100;
        let mut disks: Vec<i64> = machines.iter().map(|m| inflate(m.2)).collect();
        disks.sort_unstable();
        let cloned: i64 = disks.iter().rev().take(usize::try_from(clones).unwrap()).sum();
        prop_assert!(limit(&hard, "requests.storage") >= i128::from(disks.iter().sum::<i64>() + cloned) * 1000);
        if counted {
            prop_assert_eq!(limit(&hard, "count/kitevirtualmachines.kite.dev"), i128::from(count + spare) * 1000);
            prop_assert!(limit(&hard, "persistentvolumeclaims") >= i128::from(i64::from(count) + clones) * 1000);
        }
        prop_assert!(!hard.as_object().unwrap().keys().any(|k| k.starts_with("limits.")));
    }
}

// U-6: no quota anywhere means no ResourceQuota; U-10: closing one leaves room for no machine.
#[test]
fn no_quota_is_none_and_a_closing_one_counts_to_zero() {
    let platform = platform();
    let mut user = ValidUser::parse(&raw_user(), &platform).unwrap();
    let closing = |user: &ValidUser| {
        value(&kite_render::user::closing_quota(user, &platform, 1))["spec"]["hard"].clone()
    };
    assert_eq!(closing(&user)["count/kitevirtualmachines.kite.dev"], "0");
    assert_eq!(
        closing(&user)["requests.cpu"],
        value(&resource_quota(&user, &platform, 1))["spec"]["hard"]["requests.cpu"]
    );
    user.quota = None;
    assert!(resource_quota(&user, &platform, 1).is_none() && limit_range(&user).is_none());
    assert_eq!(
        closing(&user),
        json!({"count/kitevirtualmachines.kite.dev": "0"})
    );
    user.quota = Some(ValidQuota::default());
    assert!(resource_quota(&user, &platform, 1).is_none());
}

// C-20, C-18
#[test]
fn the_login_hash_moves_with_keys_and_the_password_secret_and_holds_no_password() {
    let platform = platform();
    let machine = ValidMachine::parse(&raw_machine(), &platform).unwrap();
    let hash = |text: char| {
        CryptHash::parse(format!("$6$salt${}", text.to_string().repeat(86)).as_bytes()).unwrap()
    };
    let (one, two) = (hash('a'), hash('b'));
    let with = |password| {
        kite_render::machine::login_hash(
            &machine,
            &Login {
                keys: &machine.ssh_keys,
                password,
            },
        )
        .unwrap()
    };
    let version = |hash, version| Some(Password { hash, version });
    assert_eq!(with(version(&one, "1")), with(version(&two, "1")));
    assert_ne!(with(version(&one, "1")), with(version(&one, "2")));
    assert_ne!(with(None), with(version(&one, "1")));
    let other = Login {
        keys: &[],
        password: None,
    };
    assert_ne!(
        with(None),
        kite_render::machine::login_hash(&machine, &other).unwrap()
    );
}
