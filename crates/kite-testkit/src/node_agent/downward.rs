//! The downward API: what a pod may be told about itself.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::{Container, ObjectFieldSelector, Pod, ResourceFieldSelector};
use kube::ResourceExt;

/// A pod and where it is.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// As it was when it was started.
    pub(super) pod: Pod,
    /// Its address.
    pub(super) ip: Ipv4Addr,
    /// The address of its node.
    pub(super) host: Ipv4Addr,
}

impl Facts {
    /// The field that a `fieldRef` names.
    pub(super) fn field(&self, selector: &ObjectFieldSelector) -> Result<String, String> {
        let path = selector.field_path.as_str();
        let spec = self.pod.spec.as_ref();
        let text = |value: Option<&String>| value.cloned().unwrap_or_default();
        Ok(match path {
            "metadata.name" => self.pod.name_any(),
            "metadata.namespace" => self.pod.namespace().unwrap_or_default(),
            "metadata.uid" => self.pod.uid().unwrap_or_default(),
            "spec.nodeName" => text(spec.and_then(|spec| spec.node_name.as_ref())),
            "spec.serviceAccountName" => {
                text(spec.and_then(|spec| spec.service_account_name.as_ref()))
            }
            "status.podIP" | "status.podIPs" => self.ip.to_string(),
            "status.hostIP" | "status.hostIPs" => self.host.to_string(),
            _ => {
                if let Some(key) = key(path, "metadata.labels") {
                    text(self.pod.labels().get(key))
                } else if let Some(key) = key(path, "metadata.annotations") {
                    text(self.pod.annotations().get(key))
                } else {
                    return Err(format!("the field {path:?} is not one of the downward API"));
                }
            }
        })
    }

    /// The resource that a `resourceFieldRef` names; without a limit the node's.
    pub(super) fn resource(
        &self,
        own: Option<&Container>,
        selector: &ResourceFieldSelector,
    ) -> Result<String, String> {
        let spec = self.pod.spec.as_ref();
        let named = selector.container_name.as_deref().and_then(|name| {
            let containers = spec.map(|spec| spec.containers.as_slice());
            let mut containers = containers.unwrap_or_default().iter();
            containers.find(|container| container.name == name)
        });
        let resources = named.or(own).and_then(|c| c.resources.as_ref());
        let (kind, name) = selector
            .resource
            .split_once('.')
            .ok_or_else(|| format!("the resource {:?} has no kind", selector.resource))?;
        let of = |kind: &str| {
            let all = match kind {
                "limits" => resources?.limits.as_ref()?,
                _ => resources?.requests.as_ref()?,
            };
            Some(all.get(name)?.0.clone())
        };
        let set = of(kind).or_else(|| {
            if kind == "requests" {
                of("limits")
            } else {
                None
            }
        });
        let amount = set.unwrap_or_else(|| node_has(name).to_owned());
        let divisor = selector.divisor.as_ref().map_or("1", |divisor| &divisor.0);
        let number =
            |text: &str| thousandths(text).ok_or_else(|| format!("{text:?} is no quantity"));
        // A divisor of 0 stands for none.
        let divisor = number(divisor)?.max(if divisor == "0" { 1000 } else { 1 });
        Ok(number(&amount)?.div_ceil(divisor).to_string())
    }
}

/// What a node offers to pods, by resource.
pub(super) fn node_has(resource: &str) -> &'static str {
    match resource {
        "cpu" => "8",
        "memory" => "16Gi",
        "ephemeral-storage" => "64Gi",
        "pods" => "110",
        _ => "0",
    }
}

/// `metadata.labels['a']` with `a` as its key.
fn key<'a>(path: &'a str, map: &str) -> Option<&'a str> {
    path.strip_prefix(map)?
        .strip_prefix("['")?
        .strip_suffix("']")
}

/// A quantity in thousandths, so that millicores are whole.
fn thousandths(quantity: &str) -> Option<u128> {
    const UNITS: [(&str, u128); 12] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("Pi", 1 << 50),
        ("k", 1000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
        ("P", 1_000_000_000_000_000),
        ("m", 0),
        ("", 1),
    ];
    let (unit, factor) = UNITS
        .into_iter()
        .find(|(unit, _)| quantity.ends_with(unit))?;
    let digits = quantity.strip_suffix(unit)?;
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let mut part = part.to_owned();
    part.truncate(3);
    let number: u128 = format!("{whole}{part:0<3}").parse().ok()?;
    Some(if unit == "m" {
        number.div_ceil(1000)
    } else {
        number * factor
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn facts() -> Facts {
        let pod = json!({
            "metadata": {"name": "web-0", "namespace": "shop", "uid": "u", "labels": {"a/b": "c"}},
            "spec": {"nodeName": "n", "serviceAccountName": "s", "containers": [{
                "name": "main",
                "resources": {"limits": {"cpu": "1500m", "memory": "64Mi"}},
            }]},
        });
        Facts {
            pod: serde_json::from_value(pod).unwrap(),
            ip: Ipv4Addr::new(127, 1, 2, 3),
            host: Ipv4Addr::new(127, 1, 2, 1),
        }
    }

    #[test]
    fn a_pod_is_told_its_names_and_addresses() {
        let told = |path: &str| {
            let field_path = path.to_owned();
            facts().field(&ObjectFieldSelector {
                field_path,
                ..ObjectFieldSelector::default()
            })
        };
        for (path, value) in [
            ("metadata.name", "web-0"),
            ("metadata.namespace", "shop"),
            ("metadata.uid", "u"),
            ("metadata.labels['a/b']", "c"),
            ("metadata.annotations['a/b']", ""),
            ("spec.nodeName", "n"),
            ("spec.serviceAccountName", "s"),
            ("status.podIP", "127.1.2.3"),
            ("status.hostIP", "127.1.2.1"),
        ] {
            assert_eq!(told(path).as_deref(), Ok(value), "{path}");
        }
        assert!(told("spec.dream").is_err());
    }

    #[test]
    fn a_resource_is_rounded_up_to_its_divisor_and_without_a_limit_is_the_nodes() {
        let facts = facts();
        let own = facts.pod.spec.as_ref().map(|spec| &spec.containers[0]);
        let told = |resource: &str, divisor: &str| {
            let selector = json!({"resource": resource, "divisor": divisor});
            let selector = serde_json::from_value(selector).unwrap();
            facts.resource(own, &selector).unwrap()
        };
        assert_eq!(told("limits.cpu", "1"), "2");
        assert_eq!(told("limits.cpu", "1m"), "1500");
        assert_eq!(told("requests.cpu", "0"), "2");
        assert_eq!(told("limits.memory", "1Mi"), "64");
        assert_eq!(told("limits.memory", "0"), "67108864");
        assert_eq!(told("limits.ephemeral-storage", "1Gi"), "64");
    }
}
