//! The generated manifests and the book's examples, on a real API server.
//!
//! What a role allows is shown by the scenarios, which run under it; here the
//! server only takes the files as they are, with unknown fields refused.

use std::path::Path;

use kite_api::labels::Controller;
use kite_testkit::{install, shared};

/// A namespace, as a manifest.
fn namespace(name: &str) -> String {
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name},
    })
    .to_string()
}

// C-17
#[tokio::test]
async fn the_server_takes_every_generated_manifest_and_every_example() {
    let control_plane = shared().await;
    let client = control_plane.admin_client().await.unwrap();
    install::kite_crds(control_plane).await.unwrap();
    for name in [install::SYSTEM_NAMESPACE, "kite-images", "alice"] {
        install::apply(&client, &namespace(name)).await.unwrap();
    }
    for controller in Controller::ALL {
        install::rbac(control_plane, controller.name())
            .await
            .unwrap();
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples");
    install::apply_paths(&client, &[examples]).await.unwrap();

    let machines = ["get", "ktvm", "-n", "alice", "-o", "name"];
    let machines = control_plane
        .kubectl(&machines)
        .await
        .unwrap()
        .ok()
        .unwrap();
    assert_eq!(machines.lines().count(), 2, "{machines}");
}
