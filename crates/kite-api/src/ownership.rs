//! Who writes which part of a KiteVirtualMachine's status (rule C-9).
//!
//! Four controllers share one status. Each sends its complete part or nothing
//! (rule C-3), so each must know what its part is, and that stands here once.
//! `phase` belongs to nobody here: who writes it changes during a machine's life
//! (rule C-10), and the two controllers concerned decide that themselves.

use crate::condition::{
    self, ACCEPTED, AGENT_CONNECTED, DELETING, DISK_READY, DOMAIN_READY, LIVE_MIGRATABLE, PAUSED,
    POWER_IN_SYNC, READY, RECONCILING, RESOURCES_APPLIED, RESTART_REQUIRED, SERVICE_READY, STALLED,
};
use crate::labels::Controller;
use crate::machine::{KiteVirtualMachine, KiteVirtualMachineStatus};

/// The conditions of a machine that a controller writes; nobody else writes them.
pub const fn conditions_of(controller: Controller) -> &'static [&'static str] {
    match controller {
        Controller::User | Controller::Namespace => &[],
        Controller::Vm => &[
            ACCEPTED,
            RESOURCES_APPLIED,
            DOMAIN_READY,
            DELETING,
            RECONCILING,
            STALLED,
        ],
        Controller::VmStatus => &[
            READY,
            POWER_IN_SYNC,
            PAUSED,
            RESTART_REQUIRED,
            LIVE_MIGRATABLE,
            AGENT_CONNECTED,
        ],
        Controller::Service => &[SERVICE_READY],
        Controller::DataVolume => &[DISK_READY],
    }
}

/// A controller's part of a machine's status, without `phase`. All else is empty.
///
/// The observed generation that the schema's default gives (−1) was written by
/// nobody and is nobody's part.
pub fn part_of(
    controller: Controller,
    status: &KiteVirtualMachineStatus,
) -> KiteVirtualMachineStatus {
    // No `..`: a new field does not compile before it has an owner.
    let KiteVirtualMachineStatus {
        observed_generation,
        phase: _,
        claim_uid,
        data_volume_name,
        cloud_init_secret_name,
        ssh_key_secret_name,
        service_name,
        ingress_name,
        domain,
        storage_class_name,
        current_power_state,
        virtual_machine_uid,
        node_name,
        ip_addresses,
        last_stop,
        blocked_by,
        endpoints,
        data_volume_phase,
        data_volume_progress,
        data_volume_message,
        conditions,
    } = status;
    let conditions = condition::part(conditions, conditions_of(controller));
    let empty = KiteVirtualMachineStatus {
        conditions,
        ..KiteVirtualMachineStatus::default()
    };
    match controller {
        Controller::User | Controller::Namespace => empty,
        Controller::Vm => KiteVirtualMachineStatus {
            claim_uid: claim_uid.clone(),
            data_volume_name: data_volume_name.clone(),
            cloud_init_secret_name: cloud_init_secret_name.clone(),
            ssh_key_secret_name: ssh_key_secret_name.clone(),
            service_name: service_name.clone(),
            ingress_name: ingress_name.clone(),
            domain: domain.clone(),
            storage_class_name: storage_class_name.clone(),
            ..empty
        },
        Controller::VmStatus => KiteVirtualMachineStatus {
            observed_generation: observed_generation.filter(|g| *g >= 0),
            current_power_state: *current_power_state,
            virtual_machine_uid: virtual_machine_uid.clone(),
            node_name: node_name.clone(),
            ip_addresses: ip_addresses.clone(),
            last_stop: last_stop.clone(),
            blocked_by: blocked_by.clone(),
            ..empty
        },
        Controller::Service => KiteVirtualMachineStatus {
            endpoints: endpoints.clone(),
            ..empty
        },
        Controller::DataVolume => KiteVirtualMachineStatus {
            data_volume_phase: data_volume_phase.clone(),
            data_volume_progress: data_volume_progress.clone(),
            data_volume_message: data_volume_message.clone(),
            ..empty
        },
    }
}

/// What stands in a machine's status now of a controller's part.
pub fn standing(controller: Controller, machine: &KiteVirtualMachine) -> KiteVirtualMachineStatus {
    let status = machine.status.as_ref();
    status.map(|s| part_of(controller, s)).unwrap_or_default()
}

/// Whether somebody has asked for a machine to go: from then on most of its status is not told
/// any more (rule C-10).
pub const fn is_leaving(machine: &KiteVirtualMachine) -> bool {
    machine.spec.delete || machine.metadata.deletion_timestamp.is_some()
}

/// Whether two parts say the same, apart from the generation that their conditions speak of.
///
/// The parts of kite-service and kite-datavolume do not depend on most of the
/// specification; a change of it that changes nothing for them is not worth a
/// write (rule C-5), and the next one they have a reason for carries it.
pub fn says_the_same(one: &KiteVirtualMachineStatus, other: &KiteVirtualMachineStatus) -> bool {
    let without_generations = |status: &KiteVirtualMachineStatus| {
        let mut status = status.clone();
        for condition in &mut status.conditions {
            condition.observed_generation = None;
        }
        status
    };
    one == other || without_generations(one) == without_generations(other)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
    use k8s_openapi::jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    /// A status with every field and every condition of the writers filled in.
    fn full() -> KiteVirtualMachineStatus {
        let mut status: KiteVirtualMachineStatus = serde_json::from_value(json!({
            "observedGeneration": 1, "phase": "Running", "claimUID": "c", "dataVolumeName": "d",
            "cloudInitSecretName": "i", "sshKeySecretName": "k", "serviceName": "s",
            "ingressName": "g", "domain": "x.example", "storageClassName": "fast",
            "currentPowerState": "On", "virtualMachineUID": "v", "nodeName": "n",
            "ipAddresses": ["10.0.0.1"], "lastStop": {"reason": "GuestShutDown"},
            "blockedBy": "quota", "endpoints": [{"name": "ssh", "dnsName": "m", "port": 22}],
            "dataVolumePhase": "Succeeded", "dataVolumeProgress": "100%", "dataVolumeMessage": "m"
        }))
        .unwrap();
        for controller in Controller::ALL {
            for type_ in conditions_of(controller) {
                status.conditions.push(Condition {
                    type_: (*type_).to_owned(),
                    status: "True".to_owned(),
                    reason: "R".to_owned(),
                    message: String::new(),
                    observed_generation: Some(1),
                    last_transition_time: Time(Timestamp::UNIX_EPOCH),
                });
            }
        }
        status
    }

    fn fields(status: &KiteVirtualMachineStatus) -> BTreeMap<String, Value> {
        let Value::Object(mut fields) = serde_json::to_value(status).unwrap() else {
            panic!("a status is an object");
        };
        let conditions = fields.remove("conditions");
        let named = conditions
            .iter()
            .flat_map(|c| c.as_array().unwrap())
            .map(|c| {
                (
                    format!("condition {}", c["type"].as_str().unwrap()),
                    c.clone(),
                )
            });
        named.chain(fields).collect()
    }

    // C-9
    #[test]
    fn each_field_and_condition_has_one_writer_and_the_parts_make_the_whole() {
        let full = full();
        let mut together = BTreeMap::new();
        for controller in Controller::ALL {
            for (field, value) in fields(&part_of(controller, &full)) {
                let twice = together.insert(field.clone(), value);
                assert!(twice.is_none(), "{field} has two writers");
            }
        }
        let mut whole = fields(&full);
        whole.remove("phase");
        assert_eq!(together, whole);
    }

    // C-9
    #[test]
    fn the_default_of_the_schema_is_nobodys_part() {
        let fresh = KiteVirtualMachineStatus {
            observed_generation: Some(-1),
            ..KiteVirtualMachineStatus::default()
        };
        assert_eq!(
            part_of(Controller::VmStatus, &fresh),
            KiteVirtualMachineStatus::default()
        );
    }

    // C-5
    #[test]
    fn a_generation_alone_is_no_news_and_anything_else_is() {
        let one = part_of(Controller::Service, &full());
        let mut other = one.clone();
        other.conditions[0].observed_generation = Some(2);
        assert!(says_the_same(&one, &other));
        other.conditions[0].message = "changed".to_owned();
        assert!(!says_the_same(&one, &other));
    }
}
