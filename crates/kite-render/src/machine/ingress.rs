//! The machine's Ingress, once the host is its own (rules V-8, V-9).
//!
//! With `Wildcard` the ingress controller holds the certificate for the base
//! domain and the Ingress names no Secret: no key is ever copied to a user.

use k8s_openapi::api::networking::v1::{
    HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressRule,
    IngressServiceBackend, IngressSpec, IngressTLS, ServiceBackendPort,
};
use kite_api::platform::IngressTls;

use super::{HTTP, child_name};
use crate::meta::{Component, owned_by_machine};
use crate::validate::{DnsName, MachineOwner, ValidPlatform};

/// The Ingress of a host.
pub fn ingress(owner: &MachineOwner, host: &DnsName, platform: &ValidPlatform) -> Ingress {
    let backend = IngressBackend {
        service: Some(IngressServiceBackend {
            name: child_name(owner),
            port: Some(ServiceBackendPort {
                name: Some(HTTP.name.to_owned()),
                number: None,
            }),
        }),
        resource: None,
    };
    let path = HTTPIngressPath {
        backend,
        path: Some("/".to_owned()),
        path_type: "Prefix".to_owned(),
    };
    let tls = match platform.ingress_tls {
        IngressTls::None => None,
        IngressTls::Wildcard => Some(vec![IngressTLS {
            hosts: Some(vec![host.to_string()]),
            secret_name: None,
        }]),
    };
    Ingress {
        metadata: owned_by_machine(owner, child_name(owner), Component::Ingress),
        spec: Some(IngressSpec {
            ingress_class_name: platform.ingress_class.as_ref().map(ToString::to_string),
            rules: Some(vec![IngressRule {
                host: Some(host.to_string()),
                http: Some(HTTPIngressRuleValue { paths: vec![path] }),
            }]),
            tls,
            default_backend: None,
        }),
        status: None,
    }
}
