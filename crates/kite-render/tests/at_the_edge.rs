//! Values at the very edge of what is taken, rounded or compared, where one step
//! further means something else.

#![allow(clippy::unwrap_used)]

mod common;

use common::{KEY, hardware, machine, platform, raw_machine, raw_user, user, value};
use k8s_openapi::api::networking::v1::IngressTLS;
use kite_api::KitePlatform;
use kite_kubevirt::VirtualMachine;
use kite_render::compare::Compare;
use kite_render::machine::{
    KeyPair, cloud_init_name, ingress, run_strategy, ssh_key, ssh_key_name, virtual_machine,
};
use kite_render::platform::InForce;
use kite_render::user::{namespace, resource_quota};
use kite_render::validate::{
    Bytes, Cidr, CryptHash, SshPublicKey, ValidMachine, ValidPlatform, ValidUser, Wrong,
};

const MEBI: i64 = 1 << 20;

fn limit(user: &ValidUser, platform: &ValidPlatform, key: &str) -> String {
    let quota = resource_quota(user, platform, 1).unwrap();
    quota.spec.unwrap().hard.unwrap()[key].0.clone()
}

// C-17
#[test]
fn the_least_and_the_most_amount_are_taken_and_a_byte_beyond_is_not() {
    let most = platform().limits.memory;
    let (least, most) = (32 * MEBI, most.get());
    for (bytes, taken) in [
        (least, true),
        (least - 1, false),
        (most, true),
        (most + 1, false),
    ] {
        let mut raw = raw_machine();
        raw.spec.memory = bytes.to_string().as_str().into();
        assert_eq!(
            ValidMachine::parse(&raw, &platform()).is_ok(),
            taken,
            "{bytes}"
        );
    }
}

// C-19: the two last characters of each plane are nobody's, and YAML readers refuse them.
#[test]
fn characters_that_are_none_are_refused_in_every_plane() {
    for (name, taken) in [
        ("a\u{1fffd}b", true),
        ("a\u{1fffe}b", false),
        ("a\u{2ffff}b", false),
    ] {
        let mut raw = raw_user();
        raw.spec.subjects[0].name = name.to_owned();
        assert_eq!(
            ValidUser::parse(&raw, &platform()).is_ok(),
            taken,
            "{name:?}"
        );
    }
}

/// An RSA key of 2048 bits whose private half was thrown away.
const RSA: &str = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQDNG/zTo2vV/Z5k9Bfc9xSMqQKdVmIeJ/gf5rRKkiTOBvemP0jpyBs1ZQMBY2S7U/tlnPcEv4ZqHQ7mdy02QsBUjET5F+69++X767550JEfMQpjhgwmVl+JiuzdhvTv1e0UPuu2dhzM7H8sJj3qw7Mo4Q7CcY79WImlrmwyJdhmaRXpHEstQgfU2DLN/iYRHf504+4EzQSQlvjdonygV+VFmA1MOKiBd9I27v31Ymhz8g4+cnDBlbFma6aopNLLgJFfnS4kfKSGS5J/bUdSBzxS6B9Kg2rZxHDyJFjIv7Uaw4CsWgLhaOkSBXoWnmpEtzq5tkwb/1u9AMeWtmeE5iZN";

// V-12
#[test]
fn the_shortest_rsa_key_and_the_longest_line_are_taken() {
    assert_eq!(SshPublicKey::parse(RSA).unwrap().as_str(), RSA);
    let line = |length: usize| format!("{KEY}{}", "x".repeat(length - KEY.len()));
    assert!(SshPublicKey::parse(&line(4096)).is_ok());
    for length in [4097, 5000] {
        assert_eq!(SshPublicKey::parse(&line(length)), Err(Wrong::KeyLine));
    }
}

// V-12, C-18: method, perhaps parameters, salt and hash, each of them there.
#[test]
fn a_hash_of_too_few_or_too_many_or_empty_parts_is_none() {
    let hash = "a".repeat(86);
    for (text, taken) in [
        (format!("$6$salt${hash}"), true),
        (format!("$6$rounds=5000$salt${hash}"), true),
        (format!("$6$a$b$c${hash}"), true),
        (format!("$6$a$b$c$d${hash}"), false),
        (format!("$6${hash}"), false),
        (format!("$6$${hash}"), false),
    ] {
        let parsed = CryptHash::parse(text.as_bytes());
        assert_eq!(parsed.is_ok(), taken, "{text}");
        if let Ok(parsed) = parsed {
            assert_eq!(format!("{parsed:?}"), "CryptHash(…)");
        }
    }
}

// U-5
#[test]
fn a_range_knows_its_family() {
    assert!(Cidr::parse("0.0.0.0/0").unwrap().is_ipv4());
    assert!(!Cidr::parse("::/0").unwrap().is_ipv4());
}

/// The maximum that is rendered for a guest where this one stands already.
fn max_guest(memory: &str, most: i64, live: Option<i64>) -> Option<String> {
    let mut platform = platform();
    platform.limits.memory = Bytes::new(most);
    let mut raw = raw_machine();
    raw.spec.memory = memory.into();
    let machine = ValidMachine::parse(&raw, &platform).unwrap();
    let strategy = run_strategy(machine.power, machine.on_guest_shutdown);
    let mut stands = virtual_machine(&machine, strategy, &hardware(&platform));
    let domain = &mut stands.spec.template.spec.domain;
    domain.memory.max_guest = live.map(|bytes| Bytes::new(bytes).quantity());
    let stands: VirtualMachine = serde_json::from_value(value(&stands)).unwrap();
    let mut hardware = hardware(&platform);
    hardware.live = Some(&stands);
    let wanted = virtual_machine(&machine, strategy, &hardware);
    value(&wanted)["spec"]["template"]["spec"]["domain"]["memory"]["maxGuest"]
        .as_str()
        .map(str::to_owned)
}

// V-16: KubeVirt's webhook takes whole blocks of 2 MiB only, as guest and as maximum.
#[test]
fn a_maximum_of_memory_is_made_of_whole_blocks_whatever_the_limit_and_whatever_stands() {
    let gibi = 1024 * MEBI;
    assert_eq!(max_guest("1Gi", 64 * gibi, None).unwrap(), "4Gi");
    assert_eq!(max_guest("1Gi", 3 * gibi + MEBI, None).unwrap(), "3Gi");
    assert_eq!(max_guest("1Gi", 64 * gibi, Some(2 * gibi)).unwrap(), "2Gi");
    assert_eq!(
        max_guest("1Gi", 64 * gibi, Some(2 * gibi + MEBI)).unwrap(),
        "4Gi"
    );
}

// U-6: what is one whole CPU is written as one, however it came about.
#[test]
fn whole_cpus_are_written_without_a_fraction() {
    let mut user = user();
    let mut platform = platform();
    platform.limits.cpu = 7;
    let quota = user.quota.as_mut().unwrap();
    (quota.cpu, quota.machines) = (Some(10), Some(8));
    // (10 + 7) virtual CPUs by ten, nine launchers with 11m, a clone with 200m, and 1m of rounding.
    assert_eq!(limit(&user, &platform, "requests.cpu"), "2");
    user.quota.as_mut().unwrap().cpu = Some(11);
    assert_eq!(limit(&user, &platform, "requests.cpu"), "2100m");
}

// U-6: inflated by six in a hundred and a byte for each claim, never a byte too little.
#[test]
fn the_storage_of_a_quota_is_enough_to_the_byte() {
    let (mut user, platform) = (user(), platform());
    // Four machines, and a claim for the clone; the disks are there twice while one is cloned.
    let exact = |storage: i64| 2 * storage + (2 * storage * 6 + 99) / 100 + 5;
    // Around each whole mebibyte, where a byte too little would round to one less.
    for whole in (130_000..130_064).map(|n| n * MEBI) {
        let near = whole * 100 / 212;
        for storage in near - 6..near + 6 {
            user.quota.as_mut().unwrap().storage = Some(Bytes::new(storage));
            let given = limit(&user, &platform, "requests.storage");
            let given = kite_api::quantity::whole(&given).unwrap();
            assert!(given >= exact(storage), "{storage}");
        }
    }
}

// V-12, C-7
#[test]
fn the_secret_of_a_key_pair_is_the_machines_by_name_and_owner() {
    let owner = machine().owner;
    assert_eq!(ssh_key_name(&owner), "web-ssh-key");
    assert_eq!(cloud_init_name(&owner), "web-cloud-init");
    let secret = ssh_key(&owner, &KeyPair::generate(&owner).unwrap()).unwrap();
    assert_eq!(secret.metadata.name.as_deref(), Some("web-ssh-key"));
    assert_eq!(secret.metadata.namespace.as_deref(), Some("alice"));
    let owners = secret.metadata.owner_references.unwrap();
    assert_eq!(owners[0].uid, owner.uid.as_str());
}

// P-3
#[test]
fn the_last_settings_are_those_that_were_in_force() {
    let in_force = InForce::default();
    assert_eq!(in_force.last().base_domain, None);
    let object = KitePlatform::new("default", common::platform_spec());
    in_force.current(Some(&object));
    assert_eq!(in_force.last(), in_force.current(Some(&object)));
    assert_ne!(*in_force.last(), ValidPlatform::default());
}

// U-8
#[test]
fn a_label_of_the_namespace_that_was_changed_is_a_difference() {
    let wanted = namespace(&user());
    assert!(wanted.matches(&wanted));
    let mut live = wanted.clone();
    for value in live.metadata.labels.as_mut().unwrap().values_mut() {
        "other".clone_into(value);
    }
    assert!(!wanted.differences(&live).is_empty());
}

// C-7 (e), C-8: TLS that others switched on is an addition, and the same words tell it each time.
#[test]
fn tls_on_an_ingress_without_it_is_an_addition_and_an_empty_list_is_none() {
    let (machine, mut platform) = (machine(), platform());
    platform.ingress_tls = kite_api::platform::IngressTls::None;
    let host = platform.host(machine.domain_prefix.as_ref().unwrap());
    let wanted = ingress(&machine.owner, &host.unwrap().unwrap(), &platform);
    let mut live = wanted.clone();
    live.spec.as_mut().unwrap().tls = Some(Vec::new());
    assert_eq!(wanted.additions(&live), []);
    live.spec.as_mut().unwrap().tls = Some(vec![IngressTLS::default()]);
    let told: Vec<String> = wanted
        .additions(&live)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(told, ["/spec/tls has [{}], should be absent"]);
}
