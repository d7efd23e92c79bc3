//! kite-namespace as a real process: which namespaces go, and which stay. The
//! brake has a test binary of its own; here it is open wide.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]
#![allow(missing_docs, unreachable_pub, reason = "a test binary has no users")]

mod kept;
mod support;

use std::time::Duration;

use kite_testkit::audit::Table;
use kite_testkit::wait::{wait_gone, wait_until};
use kite_testkit::{KiteProcess, install};
use kube::ResourceExt;
use serde_json::json;
use support::*;
use tokio::sync::OnceCell;

/// Longer than the moment that is waited before a mark, short enough for a test.
const GRACE: Duration = Duration::from_secs(4);
/// By then an orphan is marked, due and gone.
const LONG: Duration = Duration::from_secs(9);
const SINCE: &str = "kite.dev/orphaned-since";

/// The process of this binary, and a namespace that is always needed, so that never all are orphaned.
async fn process() -> &'static KiteProcess {
    static PROCESS: OnceCell<KiteProcess> = OnceCell::const_new();
    PROCESS
        .get_or_init(|| async {
            let admin = Admin::new().await;
            install::kite_crds(admin.plane).await.unwrap();
            admin.user_with_namespace("anchor").await;
            admin
                .start(&[
                    "--grace-period",
                    "4s",
                    "--brake-least",
                    "1000",
                    "--blocked-after",
                    "15s",
                ])
                .await
        })
        .await
}

// N-1, N-3, N-4, N-5, N-8, N-9, C-7 (e), NS2, NS10, NS12, #42: each part says which it shows. Most
// is shown by waiting, so the waits go by together.
#[tokio::test]
async fn each_namespace_stays_or_goes_as_it_should() {
    tokio::join!(
        a_namespace_that_is_needed_again_in_time_is_kept(),
        a_namespace_that_is_only_labelled_is_left_alone(),
        a_namespace_that_a_user_names_is_kept_whoever_it_is_bound_to(),
        a_protected_namespace_is_kept_until_the_protection_goes(),
        a_marked_namespace_that_is_deleted_by_hand_does_not_come_back(),
        a_mark_that_was_spoilt_by_hand_is_made_anew(),
        kept::a_retained_disk_keeps_its_namespace(),
        kept::a_deletion_that_something_blocks_is_told_with_what_blocks_it(),
    );
}

// N-3, N-4, N-7, N-10: a KiteUser goes; its namespace is marked, said to be, and gone after the grace period.
#[tokio::test]
async fn a_namespace_that_nobody_needs_is_marked_and_deleted_after_the_grace_period() {
    process().await;
    let admin = Admin::new().await;
    let audit = admin.plane.audit().unwrap();
    admin.user_with_namespace("lonely").await;
    let mark = audit.settled_mark(&admin.client).await.unwrap();
    admin.delete_user("lonely").await;
    let since = admin.annotated("lonely", SINCE).await;
    let marked = std::time::Instant::now();
    assert!(
        since.parse::<k8s_openapi::jiff::Timestamp>().is_ok(),
        "{since}"
    );
    assert!(
        admin
            .event("lonely", "Orphaned")
            .await
            .contains("deleted at")
    );
    wait_gone(&admin.namespaces(), "lonely", LIMIT)
        .await
        .unwrap();
    // The mark is in whole seconds.
    assert!(
        marked.elapsed() + Duration::from_secs(1) >= GRACE,
        "{:?}",
        marked.elapsed()
    );
    audit.settled_mark(&admin.client).await.unwrap();
    let mut sent = audit.since(mark).unwrap();
    sent.retain(|r| r.is_by("kite-namespace") && !r.is_watch() && !r.is_lease() && !r.is_event());
    sent.retain(|r| r.name == "lonely" || r.namespace == "lonely");
    println!("{}", Table::of(&sent));
    // N-5, C-6: that no retained disk is in it is asked of the server itself, before the deletion.
    let deleted = sent.iter().position(|r| r.verb == "delete").unwrap();
    let until: Vec<_> = sent[..=deleted].iter().map(|r| &*r.verb).collect();
    assert_eq!(until, ["patch", "list", "delete"]);
    assert!(
        sent[1].uri.contains("labelSelector=kite.dev%2Fretained"),
        "{}",
        sent[1].uri
    );
}

// N-3, NS12: somebody needs it again during the grace period.
async fn a_namespace_that_is_needed_again_in_time_is_kept() {
    process().await;
    let admin = Admin::new().await;
    let before = admin.user_with_namespace("missed").await;
    admin.delete_user("missed").await;
    admin.annotated("missed", SINCE).await;
    admin.user("missed", "missed").await;
    admin.unannotated("missed", SINCE).await;
    admin.event("missed", "Needed").await;
    admin.stays(&["missed"], LONG).await;
    assert_eq!(
        admin.namespaces().get("missed").await.unwrap().uid(),
        before.uid()
    );
}

// N-1, NS2, #42: a label alone proves nothing, not even on the cluster's own namespaces; it is
// reported and left alone, byte for byte.
async fn a_namespace_that_is_only_labelled_is_left_alone() {
    let process = process().await;
    let admin = Admin::new().await;
    let labelled = [
        ("labelled", None),
        ("labelled-empty", Some("")),
        ("kube-system", None),
        ("default", None),
    ];
    let mut before = Vec::new();
    for (name, uid) in labelled {
        admin.apply(&namespace(name, uid)).await;
        before.push(admin.namespaces().get(name).await.unwrap());
    }
    admin.stays(&labelled.map(|(name, _)| name), LONG).await;
    for was in before {
        assert_eq!(was, admin.namespaces().get(&was.name_any()).await.unwrap());
    }
    let unbound = process
        .metrics()
        .await
        .unwrap()
        .sum("kite_namespaces_unbound", &[]);
    assert!(unbound >= 4.0, "{unbound}");
}

// N-3: bound to one that is gone, but named by a live one: it is kite-user's and people's to decide whose it is.
async fn a_namespace_that_a_user_names_is_kept_whoever_it_is_bound_to() {
    process().await;
    let admin = Admin::new().await;
    admin.user("namer", "named").await;
    admin
        .apply(&namespace(
            "named",
            Some("00000000-0000-0000-0000-000000000000"),
        ))
        .await;
    admin.stays(&["named"], LONG).await;
    assert!(
        !admin
            .namespaces()
            .get("named")
            .await
            .unwrap()
            .annotations()
            .contains_key(SINCE)
    );
}

// N-5: an administrator keeps it, and lets it go.
async fn a_protected_namespace_is_kept_until_the_protection_goes() {
    process().await;
    let admin = Admin::new().await;
    admin.user_with_namespace("precious").await;
    admin
        .annotate("precious", json!({"kite.dev/deletion-protected": "true"}))
        .await;
    admin.delete_user("precious").await;
    assert_eq!(
        admin.annotated("precious", "kite.dev/deletion-held").await,
        "OrphanRetained"
    );
    admin.event("precious", "OrphanRetained").await;
    admin.stays(&["precious"], GRACE).await;
    admin
        .annotate("precious", json!({"kite.dev/deletion-protected": null}))
        .await;
    wait_gone(&admin.namespaces(), "precious", LIMIT)
        .await
        .unwrap();
}

// N-9: it makes nothing, not even by an apply that comes too late; and it writes no KiteUser.
#[tokio::test]
async fn it_may_neither_make_a_namespace_nor_write_a_user() {
    process().await;
    let admin = Admin::new().await;
    let account = "--as=system:serviceaccount:kite-system:kite-namespace";
    for (verb, what, allowed) in [
        ("delete", "namespaces", true),
        ("create", "namespaces", false),
        ("patch", "kiteusers.kite.dev", false),
        ("delete", "kiteusers.kite.dev", false),
    ] {
        let said = admin
            .plane
            .kubectl(&["auth", "can-i", verb, what, account])
            .await
            .unwrap();
        assert_eq!(said.success, allowed, "{verb} {what}: {}", said.stdout);
    }
}

// N-9: a namespace that was deleted by hand in its grace period stays away.
async fn a_marked_namespace_that_is_deleted_by_hand_does_not_come_back() {
    process().await;
    let admin = Admin::new().await;
    admin.user_with_namespace("by-hand").await;
    admin.delete_user("by-hand").await;
    admin.annotated("by-hand", SINCE).await;
    let namespaces = admin.namespaces();
    namespaces
        .delete("by-hand", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    wait_gone(&namespaces, "by-hand", LIMIT).await.unwrap();
    tokio::time::sleep(LONG).await;
    assert!(namespaces.get_opt("by-hand").await.unwrap().is_none());
}

// C-7 (e), N-4: a mark that is no time is none.
async fn a_mark_that_was_spoilt_by_hand_is_made_anew() {
    process().await;
    let admin = Admin::new().await;
    admin.user_with_namespace("spoilt").await;
    admin.delete_user("spoilt").await;
    admin.annotated("spoilt", SINCE).await;
    admin.annotate("spoilt", json!({SINCE: "soon"})).await;
    let good = |ns: &k8s_openapi::api::core::v1::Namespace| ns.annotations()[SINCE] != "soon";
    wait_until(&admin.namespaces(), "spoilt", LIMIT, good)
        .await
        .unwrap();
    wait_gone(&admin.namespaces(), "spoilt", LIMIT)
        .await
        .unwrap();
}
