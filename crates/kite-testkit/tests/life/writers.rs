//! Who wrote what, by the managers that the server keeps of each field.

use k8s_openapi::api::core::v1::{Namespace, ResourceQuota, Secret, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kite_api::KiteVirtualMachine;
use kite_api::labels::Controller;
use kite_api::ownership::{conditions_of, part_of};
use kite_kubevirt::{DataVolume, VirtualMachine};
use kite_testkit::tenant::Tenant;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::Value;

/// C-2: what Kite made was applied, by the process whose it is to make, and under its name alone.
pub(crate) async fn every_write_is_an_apply_under_the_binarys_name(tenant: &Tenant<'_>) {
    let all = ListParams::default();
    let namespaces: Api<Namespace> = Api::all(tenant.client.clone());
    let namespace = namespaces.get(&tenant.name).await.unwrap();
    let mut made = vec![("kite-user", "Namespace", namespace.metadata)];
    let quotas = tenant.api::<ResourceQuota>().list(&all).await.unwrap();
    made.extend(
        quotas
            .into_iter()
            .map(|q| ("kite-user", "ResourceQuota", q.metadata)),
    );
    let policies = tenant.api::<NetworkPolicy>().list(&all).await.unwrap();
    made.extend(
        policies
            .into_iter()
            .map(|p| ("kite-user", "NetworkPolicy", p.metadata)),
    );
    let vm: VirtualMachine = tenant.api().get("web").await.unwrap();
    made.push(("kite-vm", "VirtualMachine", vm.metadata));
    let disk: DataVolume = tenant.api().get("web").await.unwrap();
    made.push(("kite-vm", "DataVolume", disk.metadata));
    let service: Service = tenant.api().get("web").await.unwrap();
    made.push(("kite-vm", "Service", service.metadata));
    for name in ["web-cloud-init", "web-ssh-key"] {
        let secret: Secret = tenant.api().get(name).await.unwrap();
        made.push(("kite-vm", "Secret", secret.metadata));
    }
    assert!(made.len() >= 9, "{made:#?}");
    for (writer, kind, meta) in made {
        let entries = meta.managed_fields.unwrap_or_default();
        let by_kite = entries.iter().filter_map(|entry| {
            let manager = entry.manager.as_deref()?;
            manager
                .starts_with("kite")
                .then_some((manager, entry.operation.as_deref()?))
        });
        let by_kite: Vec<_> = by_kite.collect();
        assert_eq!(by_kite, [(writer, "Apply")], "{kind} {:?}", meta.name);
    }
    let machine: KiteVirtualMachine = tenant.api().get("web").await.unwrap();
    let status = machine.managed_fields().iter();
    let status = status.filter(|e| e.subresource.as_deref() == Some("status"));
    let mut writers: Vec<_> = status
        .map(|e| {
            (
                e.manager.as_deref().unwrap(),
                e.operation.as_deref().unwrap(),
            )
        })
        .collect();
    writers.sort_unstable();
    let four = [
        "kite-datavolume",
        "kite-service",
        "kite-vm",
        "kite-vm-status",
    ];
    assert_eq!(writers, four.map(|name| (name, "Apply")));
}

/// C-9: each status field and condition has one field manager.
pub(crate) fn one_owner_for_each_field(machine: &KiteVirtualMachine) {
    let status = machine.status.clone().unwrap();
    let mut owners: Vec<(String, String)> = Vec::new();
    for entry in machine.managed_fields() {
        if entry.subresource.as_deref() != Some("status") {
            continue;
        }
        let manager = entry.manager.clone().unwrap();
        let fields: Value = serde_json::to_value(&entry.fields_v1).unwrap();
        for (field, inside) in fields["f:status"].as_object().unwrap() {
            if field == "f:conditions" {
                for key in inside
                    .as_object()
                    .unwrap()
                    .keys()
                    .filter(|k| k.starts_with("k:"))
                {
                    owners.push((key.clone(), manager.clone()));
                }
            } else {
                owners.push((field.clone(), manager.clone()));
            }
        }
    }
    let mut fields: Vec<_> = owners.iter().map(|(f, _)| f.clone()).collect();
    fields.sort();
    let all = fields.len();
    fields.dedup();
    assert_eq!(all, fields.len(), "a field has two managers: {owners:#?}");
    for controller in [
        Controller::Vm,
        Controller::VmStatus,
        Controller::Service,
        Controller::DataVolume,
    ] {
        let part = part_of(controller, &status);
        assert!(
            !part.conditions.is_empty(),
            "{} says nothing",
            controller.name()
        );
        for type_ in conditions_of(controller) {
            let key = format!("k:{{\"type\":\"{type_}\"}}");
            let others: Vec<_> = owners
                .iter()
                .filter(|(f, m)| *f == key && m != controller.name())
                .collect();
            assert!(others.is_empty(), "{type_} is written by {others:?}");
        }
    }
}
