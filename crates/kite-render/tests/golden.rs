//! Everything that one user and one machine get, as files to read and review.
//!
//! A changed file is a change to every cluster: look at the difference, then
//! write the files anew with `UPDATE_GOLDEN=1 cargo test -p kite-render --test golden`.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::path::PathBuf;

use common::{hardware, machine, platform, user, value};
use kite_render::machine::{
    Login, Password, cloud_init, data_volume, host_claim, ingress, run_strategy, service,
    virtual_machine,
};
use kite_render::user::{
    ServiceAccount, limit_range, namespace, network_policies, resource_quota, tenant_role_binding,
    vm_secrets_role_binding,
};
use kite_render::validate::{CryptHash, DnsLabel, DnsName};
use serde_json::Value;

fn check(name: &str, objects: &[Value]) {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "golden", name]
        .iter()
        .collect();
    let documents: Vec<String> = objects
        .iter()
        .map(|o| serde_saphyr::to_string(o).unwrap())
        .collect();
    let text = documents.join("---\n");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, golden, "{name} is stale; see the head of this file");
}

// U-4, U-5, U-6
#[test]
fn a_user_gets_what_the_file_says() {
    let (user, platform) = (user(), platform());
    let kite_vm = ServiceAccount {
        namespace: DnsLabel::parse("kite-system").unwrap(),
        name: DnsLabel::parse("kite-vm").unwrap(),
    };
    let [isolation, clone] = network_policies(&user, &platform);
    check(
        "user.yaml",
        &[
            value(&namespace(&user)),
            value(&isolation),
            value(&clone),
            value(&resource_quota(&user, &platform, 1).unwrap()),
            value(&limit_range(&user).unwrap()),
            value(&vm_secrets_role_binding(&user, &kite_vm)),
            value(&tenant_role_binding(&user).unwrap()),
        ],
    );
}

// V-8, V-12, V-13, V-16, V-17
#[test]
fn a_machine_gets_what_the_file_says() {
    let (machine, platform) = (machine(), platform());
    let host = platform
        .host(machine.domain_prefix.as_ref().unwrap())
        .unwrap()
        .unwrap();
    let class = DnsName::parse("fast").unwrap();
    let hash = CryptHash::parse(format!("$6$saltsalt${}", "a".repeat(86)).as_bytes()).unwrap();
    let login = Login {
        keys: &machine.ssh_keys,
        password: Some(Password {
            hash: &hash,
            version: "7",
        }),
    };
    let mut secret = value(&cloud_init(&machine, &login).unwrap());
    // Shown as text, since nobody reviews base64.
    let data = cloud_init(&machine, &login).unwrap().data.unwrap();
    let text: serde_json::Map<_, _> = data
        .into_iter()
        .map(|(k, v)| (k, Value::String(String::from_utf8(v.0).unwrap())))
        .collect();
    secret["data"] = Value::Object(text);
    let strategy = run_strategy(machine.power, machine.on_guest_shutdown);
    check(
        "machine.yaml",
        &[
            secret,
            value(&data_volume(&machine, &platform, Some(&class))),
            value(&virtual_machine(&machine, strategy, &hardware(&platform))),
            value(&service(&machine.owner)),
            value(&host_claim(&machine.owner, &host)),
            value(&ingress(&machine.owner, &host, &platform)),
        ],
    );
}
