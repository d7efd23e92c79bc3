//! The same life with Kite as Helm installs it: charts, flags, rights, probes and
//! pods are what an administrator gets.

use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::helm::Helm;
use kite_testkit::installed::Installed;

use crate::whole_life;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_whole_life_passes_in_pods_that_helm_4_installed() {
    the_whole_life_passes_in_pods_installed_by(Helm::Four).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_whole_life_passes_in_pods_that_helm_3_installed() {
    the_whole_life_passes_in_pods_installed_by(Helm::Three).await;
}

// C-2, C-5, C-9, C-11, C-13
async fn the_whole_life_passes_in_pods_installed_by(helm: Helm) {
    let installed = Installed::ground().await.unwrap();
    // Given that Helm says all is ready,
    let said = installed
        .install_all(helm, &["namespace.gracePeriod=3s"])
        .await
        .unwrap();
    assert!(said.contains("STATUS: deployed"), "{said}");
    let mut there = installed.controllers().await.unwrap();
    there.sort_unstable();
    let mut all = CONTROLLERS;
    all.sort_unstable();
    assert_eq!(there, all);
    // then the life costs and shows what it does without pods.
    let restart = async || {
        for controller in CONTROLLERS {
            installed.restart(controller).await.unwrap();
        }
    };
    whole_life(&installed.cluster, restart).await;
}
