//! What cannot work is refused by the API server itself, with a message that says
//! what to do; and a process that was called wrongly ends with a sentence.

use std::process::Command;

use kite_api::{KitePlatform, KiteVirtualMachine};
use kite_testkit::kite_process::binary;
use kite_testkit::{ControlPlane, Options, install};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

async fn server() -> (ControlPlane, Client) {
    let options = Options {
        controller_manager: false,
        ..Options::default()
    };
    let control_plane = ControlPlane::start(options).await.unwrap();
    install::kite_crds(&control_plane).await.unwrap();
    let client = control_plane.admin_client().await.unwrap();
    (control_plane, client)
}

fn machine(name: &str, spec: &Value) -> KiteVirtualMachine {
    let mut whole = json!({"cpu": 1, "memory": "1Gi", "disk": "2Gi", "image": "ubuntu-24.04"});
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    let object = json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
        "metadata": {"name": name, "namespace": "default"}, "spec": whole,
    });
    serde_json::from_value(object).unwrap()
}

// C-17, rows IN1 to IN4, SE5 to SE8
#[tokio::test]
async fn a_machine_that_cannot_work_is_refused_with_words_that_help() {
    let (_control_plane, client) = server().await;
    let machines: Api<KiteVirtualMachine> = Api::namespaced(client, "default");
    let long = "a".repeat(64);
    for (name, spec, words) in [
        ("web", json!({"cpu": 0}), "spec.cpu"),
        ("web", json!({"cpu": 1_000_000_000}), "spec.cpu"),
        (
            "web",
            json!({"memory": "1"}),
            "memory must be between 32Mi and 12Ti, for instance 4Gi",
        ),
        (
            "web",
            json!({"memory": "100m"}),
            "memory must be between 32Mi and 12Ti",
        ),
        (
            "web",
            json!({"memory": "9223372036854775808"}),
            "spec.memory",
        ),
        ("web", json!({"memory": "-1Gi"}), "spec.memory"),
        ("web", json!({"memory": "1gi"}), "spec.memory"),
        (
            "web",
            json!({"disk": "16Ei"}),
            "disk must be between 64Mi and 64Ti, for instance 25Gi",
        ),
        (
            "web",
            json!({"disk": "0"}),
            "disk must be between 64Mi and 64Ti",
        ),
        ("web", json!({"image": "../other/pvc"}), "spec.image"),
        ("web", json!({"image": "x\nruncmd: [reboot]"}), "spec.image"),
        ("web", json!({"domainPrefix": "Shop"}), "spec.domainPrefix"),
        ("web", json!({"domainPrefix": "*"}), "spec.domainPrefix"),
        ("web", json!({"domainPrefix": "a."}), "spec.domainPrefix"),
        (
            "web",
            json!({"loginUser": "root"}),
            "loginUser must not be root; name an ordinary user",
        ),
        ("web", json!({"loginUser": "a: b"}), "spec.loginUser"),
        (
            "web",
            json!({"sshAuthorizedKeys": ["command=\"x\" ssh-ed25519 AAAA"]}),
            "spec.sshAuthorizedKeys",
        ),
        (
            "web",
            json!({"sshAuthorizedKeys": ["ssh-ed25519 AAAA\nssh-ed25519 BBBB"]}),
            "spec.sshAuthorizedKeys",
        ),
        (
            long.as_str(),
            json!({}),
            "start with a letter and use at most 63 lower-case letters",
        ),
        ("a.b", json!({}), "without dots"),
        ("1a", json!({}), "start with a letter"),
    ] {
        let refused = machines
            .create(&PostParams::default(), &machine(name, &spec))
            .await;
        let said = refused
            .err()
            .unwrap_or_else(|| panic!("{name} {spec} was accepted"))
            .to_string();
        assert!(said.contains(words), "{name} {spec}: {said}");
    }
    // Names at the edges of what can work.
    for name in ["a".repeat(63), "b".repeat(53), "a1-b2".to_owned()] {
        machines
            .create(&PostParams::default(), &machine(&name, &json!({})))
            .await
            .unwrap();
    }
}

/// Merges into the spec of a machine; the error's words, or nothing.
async fn edit(machines: &Api<KiteVirtualMachine>, name: &str, spec: Value) -> Option<String> {
    let patch = Patch::Merge(json!({"spec": spec}));
    let answer = machines.patch(name, &PatchParams::default(), &patch).await;
    answer.err().map(|error| error.to_string())
}

// C-17: what cannot change cannot be unset and set again either
#[tokio::test]
async fn what_cannot_change_cannot_be_got_round_by_unsetting_it() {
    let (_control_plane, client) = server().await;
    let machines: Api<KiteVirtualMachine> = Api::namespaced(client, "default");
    let full = json!({"disk": "10Gi", "storageClassName": "fast", "loginUser": "alice"});
    machines
        .create(&PostParams::default(), &machine("full", &full))
        .await
        .unwrap();
    machines
        .create(&PostParams::default(), &machine("plain", &json!({})))
        .await
        .unwrap();
    for (name, spec, words) in [
        (
            "full",
            json!({"disk": "1Gi"}),
            "disk only grows; to have a smaller one, make a new machine",
        ),
        ("full", json!({"disk": null}), "spec.disk"),
        ("full", json!({"image": "debian-13"}), "image cannot change"),
        ("full", json!({"image": null}), "spec.image"),
        (
            "full",
            json!({"loginUser": "bob"}),
            "loginUser cannot change",
        ),
        (
            "full",
            json!({"loginUser": null}),
            "loginUser cannot change",
        ),
        (
            "full",
            json!({"storageClassName": "slow"}),
            "storageClassName cannot be changed, set or unset later",
        ),
        (
            "full",
            json!({"storageClassName": null}),
            "storageClassName cannot be changed, set or unset later",
        ),
        (
            "plain",
            json!({"storageClassName": "fast"}),
            "storageClassName cannot be changed, set or unset later",
        ),
    ] {
        let said = edit(&machines, name, spec.clone()).await;
        let said = said.unwrap_or_else(|| panic!("{name}: {spec} was accepted"));
        assert!(said.contains(words), "{name} {spec}: {said}");
    }
    assert_eq!(
        edit(
            &machines,
            "full",
            json!({"disk": "20Gi", "cpu": 2, "powerState": "Off"})
        )
        .await,
        None
    );
    // The way out is one-way (V-18).
    assert_eq!(
        edit(&machines, "plain", json!({"delete": true})).await,
        None
    );
    for back in [json!({"delete": false}), json!({"delete": null})] {
        let said = edit(&machines, "plain", back)
            .await
            .expect("a deletion was taken back");
        assert!(said.contains("delete cannot be taken back"), "{said}");
    }
}

// P-1
#[tokio::test]
async fn there_is_one_platform_and_its_name_is_default() {
    let (_control_plane, client) = server().await;
    let platforms: Api<KitePlatform> = Api::all(client);
    let other = KitePlatform::new("other", kite_api::KitePlatformSpec::default());
    let said = platforms
        .create(&PostParams::default(), &other)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("there is one KitePlatform and its name is default"),
        "{said}"
    );
}

// C-1, row LE14
#[test]
fn a_process_that_is_called_wrongly_ends_with_two_and_a_sentence() {
    for name in kite_testkit::cluster::CONTROLLERS {
        for (args, words) in [
            (
                &["--lease-duration", "10s"][..],
                "must be less than --lease-duration",
            ),
            (
                &["--renew-interval", "soon"][..],
                "is not a time; write for instance 15s",
            ),
            (&["--listen", "nowhere"][..], "invalid value 'nowhere'"),
            (
                &["--no-such-flag"][..],
                "unexpected argument '--no-such-flag'",
            ),
        ] {
            let output = Command::new(binary(name).unwrap())
                .args(args)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{name} {args:?}: {said}");
            assert!(said.contains(words), "{name} {args:?}: {said}");
        }
        let args = ["--kubeconfig", "no/such/file", "--listen", "127.0.0.1:0"];
        let output = Command::new(binary(name).unwrap())
            .args(args)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("check --kubeconfig"), "{said}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = Command::new(binary("kite-vm").unwrap())
        .args(["--listen", &address])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.contains(&format!("cannot listen on {address}")),
        "{said}"
    );
}
