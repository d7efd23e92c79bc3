//! Every word of KubeVirt's, on a machine that runs and on one that is off.

use kite_api::KiteVirtualMachine;
use kite_testkit::place::LONG;
use serde_json::json;

use crate::{line, place};

/// KubeVirt's word, what is said of a machine whose guest runs and is to, and of one that has
/// none and is to have none.
const TABLE: [(&str, &str, &str); 19] = [
    (
        "Running",
        "Running On True Running",
        "Running On False StopPending",
    ),
    (
        "Paused",
        "Paused On False Paused",
        "Paused On False StopPending",
    ),
    (
        "Migrating",
        "Migrating On True Migrating",
        "Migrating On False StopPending",
    ),
    (
        "Starting",
        "Starting On False Starting",
        "Starting On False Starting",
    ),
    (
        "Stopping",
        "Stopping On False Stopping",
        "Stopping On False Stopping",
    ),
    (
        "Provisioning",
        "Provisioning On False Provisioning",
        "Provisioning Off True Stopped",
    ),
    (
        "Terminating",
        "Stopping On False Stopping",
        "Stopping On False Stopping",
    ),
    (
        "WaitingForVolumeBinding",
        "Provisioning On False Provisioning",
        "Provisioning Off True Stopped",
    ),
    (
        "CrashLoopBackOff",
        "Failed On False CrashLoopBackOff",
        "Failed Off False CrashLoopBackOff",
    ),
    (
        "WaitingForReceiver",
        "Provisioning On False Provisioning",
        "Provisioning Off True Stopped",
    ),
    (
        "ErrorUnschedulable",
        "Failed On False ErrorUnschedulable",
        "Failed Off False ErrorUnschedulable",
    ),
    (
        "ErrImagePull",
        "Failed On False ErrImagePull",
        "Failed Off False ErrImagePull",
    ),
    (
        "ImagePullBackOff",
        "Failed On False ImagePullBackOff",
        "Failed Off False ImagePullBackOff",
    ),
    (
        "ErrorPvcNotFound",
        "Failed On False ErrorPvcNotFound",
        "Failed Off False ErrorPvcNotFound",
    ),
    (
        "DataVolumeError",
        "Failed On False DataVolumeError",
        "Failed Off False DataVolumeError",
    ),
    (
        "Unknown",
        "Unknown On Unknown Unknown",
        "Unknown Off Unknown Unknown",
    ),
    // An instance is there, so it is not off yet.
    (
        "Stopped",
        "Stopping On False Stopping",
        "Stopped Off True Stopped",
    ),
    (
        "",
        "Unknown On Unknown Unknown",
        "Unknown Off Unknown Unknown",
    ),
    (
        "Levitating",
        "Unknown On Unknown Unknown",
        "Unknown Off Unknown Unknown",
    ),
];

// S-2, S-3, C-15, F-7, F-8
#[tokio::test]
async fn every_word_of_kubevirts_shows_as_what_it_means_on_a_real_server() {
    let place = place("words").await;
    place.machine("on", json!({})).await;
    place.machine("off", json!({"powerState": "Off"})).await;
    tokio::join!(place.ready("on"), place.ready("off"));
    for (word, on, off) in TABLE {
        let fault = format!("printable-status={word}");
        place.fault("every-object", Some(&fault)).await;
        let shows = |expected: &'static str| move |m: &KiteVirtualMachine| line(m) == expected;
        tokio::join!(
            place.until("on", LONG, shows(on)),
            place.until("off", LONG, shows(off))
        );
    }
    // C-10: and all of it was only words.
    place.fault("every-object", None).await;
    tokio::join!(place.ready("on"), place.ready("off"));
}
