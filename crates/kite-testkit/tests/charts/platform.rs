//! A whole release comes, changes and goes on a cluster of its own, with both
//! Helms; what users hang on stays.

use kite_testkit::helm::Helm;
use kite_testkit::{ControlPlane, Options};

use crate::charts;

const SPACE: [&str; 2] = ["--namespace", "kite-system"];

async fn helm(helm: Helm, cp: &ControlPlane, line: &[&str]) {
    let line = [line, &SPACE].concat();
    helm.run(cp, &line).await.unwrap().ok().unwrap();
}

async fn get(cp: &ControlPlane, line: &[&str]) -> String {
    let line = [&["get"], line].concat();
    cp.kubectl(&line).await.unwrap().ok().unwrap()
}

const DOMAIN: [&str; 4] = [
    "kiteplatform",
    "default",
    "-o",
    "jsonpath={.metadata.uid} {.spec.baseDomain}",
];
const NAMES: [&str; 5] = [
    "deployments,services,serviceaccounts,roles,clusterroles",
    "-A",
    "-l",
    "app.kubernetes.io/managed-by=Helm",
    "-oname",
];
const KEPT: [&str; 2] = ["crds,namespaces", "-oname"];

const CATEGORIES: [&str; 4] = [
    "crd",
    "kiteusers.kite.dev",
    "-o",
    "jsonpath={.spec.names.categories}",
];

/// Over what an earlier release has left.
const TAKE_OVER: &str = "--take-ownership";

fn domain(name: &str) -> String {
    format!("--set=platform.create=true,platform.spec.baseDomain={name}.example.org")
}

// The kinds and an object of these kinds come in one release, although Helm looks kinds up first.
#[tokio::test]
async fn a_platform_comes_with_its_kinds_is_upgraded_and_outlives_the_release() {
    let chart = charts().await.path("kite");
    for one in Helm::ALL {
        let cp = ControlPlane::start(Options::default()).await.unwrap();
        let [a, b, c] = ["a", "b", "c"].map(domain);
        let install = ["install", "kite", &chart, "--create-namespace"];
        let upgrade = ["upgrade", "kite", &chart];

        if one == Helm::Three {
            // It takes nothing over as it should, so it says what to do, and is done in two steps.
            let line = [&install[..], &[&a], &SPACE[..]].concat();
            let said = one.run(&cp, &line).await.unwrap().refused().unwrap();
            assert!(said.contains("ensure CRDs are installed first"), "{said}");
            helm(one, &cp, &install).await;
            helm(one, &cp, &[&upgrade[..], &[&a]].concat()).await;
        } else {
            helm(one, &cp, &[&install[..], &[&a]].concat()).await;
        }
        let made = get(&cp, &DOMAIN).await;
        let same = |domain: &str| made.replace("a.example.org", &format!("{domain}.example.org"));
        assert!(made.ends_with(" a.example.org"), "{made}");

        // With an upgrade it becomes the release's, and with the next it is.
        for (value, name) in [(&b, "b"), (&c, "c")] {
            helm(one, &cp, &[&upgrade[..], &[value]].concat()).await;
            assert_eq!(get(&cp, &DOMAIN).await, same(name));
        }

        // Back to the first revision, whose objects it was not among: it stays as it is.
        helm(one, &cp, &["rollback", "kite", "1"]).await;
        assert_eq!(get(&cp, &DOMAIN).await, same("c"));

        helm(one, &cp, &["uninstall", "kite"]).await;
        let left = get(&cp, &NAMES).await;
        assert_eq!(left, "", "nothing of the release is left");
        let kept = get(&cp, &KEPT).await;
        for name in [
            "kiteusers.kite.dev",
            "kitevirtualmachines.kite.dev",
            "/kite-images",
        ] {
            assert!(kept.contains(name), "{name}: {kept}");
        }
        assert_eq!(get(&cp, &DOMAIN).await, same("c"));

        // And once more over what was kept, of which one kind is as an older release had it.
        let older = r#"[{"op": "remove", "path": "/spec/names/categories"}]"#;
        let older = [
            "patch",
            "crd",
            "kiteusers.kite.dev",
            "--type=json",
            "-p",
            older,
        ];
        cp.kubectl(&older).await.unwrap().ok().unwrap();
        helm(one, &cp, &[&install[..], &[&b, TAKE_OVER]].concat()).await;
        assert_eq!(get(&cp, &DOMAIN).await, same("b"));
        assert_eq!(get(&cp, &CATEGORIES).await, r#"["kite"]"#);
        cp.shutdown().await;
    }
}
