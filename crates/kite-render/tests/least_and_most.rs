//! The least and the most of each number and name is taken, and one further is not.

#![allow(clippy::unwrap_used)]

mod common;

use common::{platform, platform_spec, raw_machine, raw_user};
use kite_api::{KitePlatformSpec, KiteUser};
use kite_render::validate::{ValidMachine, ValidPlatform, ValidUser};
use serde_json::json;

fn user_is_taken(change: impl FnOnce(&mut KiteUser)) -> bool {
    let mut raw = raw_user();
    change(&mut raw);
    ValidUser::parse(&raw, &platform()).is_ok()
}

fn settings_are_taken(change: impl FnOnce(&mut KitePlatformSpec)) -> bool {
    let mut spec = platform_spec();
    change(&mut spec);
    ValidPlatform::parse(&spec).is_ok()
}

// C-17, P-2
#[test]
fn a_machine_has_from_one_to_the_platforms_most_cpus() {
    let most = i32::try_from(platform().limits.cpu).unwrap();
    for (cpu, taken) in [(1, true), (0, false), (most, true), (most + 1, false)] {
        let mut raw = raw_machine();
        raw.spec.cpu = cpu;
        assert_eq!(
            ValidMachine::parse(&raw, &platform()).is_ok(),
            taken,
            "{cpu}"
        );
    }
}

// U-6
#[test]
fn a_quota_of_one_cpu_or_no_machine_is_one() {
    let quota = |cpu, machines| {
        user_is_taken(|u| {
            let quota = u.spec.quota.as_mut().unwrap();
            (quota.cpu, quota.virtual_machines) = (Some(cpu), Some(machines));
        })
    };
    assert!(quota(1, 0));
    assert!(!quota(0, 0) && !quota(1, -1));
}

// U-6
#[test]
fn a_further_key_of_a_quota_is_a_name_with_an_amount_from_nothing_on() {
    let hard = |key: &str, amount: &str| {
        user_is_taken(|u| {
            let quota = u.spec.quota.as_mut().unwrap();
            quota.hard = [(key.to_owned(), amount.into())].into();
        })
    };
    assert!(hard("pods", "0") && hard(&"a".repeat(253), "1") && hard("a-b_c.d/e", "1"));
    assert!(!hard("pods", "-1") && !hard(&"a".repeat(254), "1"));
    for key in ["", "-a", "a-", "a b", "a:b"] {
        assert!(!hard(key, "1"), "{key:?}");
    }
}

// U-5, C-17
#[test]
fn ports_and_names_of_subjects_have_their_bounds() {
    let port = |port: i32| {
        user_is_taken(|u| {
            u.spec.network.as_mut().unwrap().extra_egress[0].ports[0].port = port;
        })
    };
    assert!(port(1) && port(65_535));
    assert!(!port(0) && !port(65_536) && !port(-1));
    let subject = |length: usize| user_is_taken(|u| u.spec.subjects[0].name = "a".repeat(length));
    assert!(subject(1) && subject(253));
    assert!(!subject(0) && !subject(254));
}

// P-2
#[test]
fn the_platform_allows_at_least_one_of_everything() {
    let with = |ratio, cpu, clones| {
        settings_are_taken(|s| {
            s.cpu_allocation_ratio = ratio;
            s.limits.cpu = cpu;
            s.limits.clones_per_image = clones;
        })
    };
    assert!(with(1, 1, 1));
    assert!(!with(0, 1, 1) && !with(1, 0, 1) && !with(1, 1, 0));
}

// U-5, P-2: what stands in a selector is what Kubernetes takes as a label.
#[test]
fn the_labels_of_the_dns_pods_are_labels() {
    let labels = |key: &str, value: &str| {
        let labels = json!({key: value});
        settings_are_taken(|s| s.network.dns_labels = serde_json::from_value(labels).unwrap())
    };
    let long = "a".repeat(63);
    for (key, value) in [
        ("k8s-app", "kube-dns"),
        ("example.org/App_1.x", ""),
        (long.as_str(), long.as_str()),
    ] {
        assert!(labels(key, value), "{key}: {value}");
    }
    let longer = "a".repeat(64);
    for (key, value) in [
        ("", "x"),
        ("-a", "x"),
        ("a-", "x"),
        ("a b", "x"),
        ("Not A Name/a", "x"),
        ("example.org/", "x"),
        (longer.as_str(), "x"),
        ("a", longer.as_str()),
        ("a", "-x"),
        ("a", "x-"),
        ("a", "x y"),
    ] {
        assert!(!labels(key, value), "{key}: {value}");
    }
}
