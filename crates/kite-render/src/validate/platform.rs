//! The KitePlatform, checked. Absent, the defaults hold (rule P-1).
//!
//! Which settings stay in force when new ones are wrong is the caller's matter (rule P-3).

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use kite_api::platform::{IngressTls, KitePlatformSpec, PlatformLimits, PlatformNetwork};

use super::{Bytes, Cidr, DnsLabel, DnsName, Problems, ValidQuota, Wrong};

/// Settings of the cluster that cannot be wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidPlatform {
    /// Domain under which machines get host names.
    pub base_domain: Option<DnsName>,
    /// Class of machines' Ingresses.
    pub ingress_class: Option<DnsName>,
    /// Namespace of the ingress controller's pods.
    pub ingress_namespace: Option<DnsLabel>,
    /// Who holds the certificate.
    pub ingress_tls: IngressTls,
    /// Storage class of machines that name none.
    pub storage_class: Option<DnsName>,
    /// Namespace of the published images.
    pub image_namespace: DnsLabel,
    /// Namespaces that no user may have.
    pub reserved_namespaces: BTreeSet<DnsLabel>,
    /// Prefixes that no machine may have.
    pub reserved_prefixes: BTreeSet<DnsLabel>,
    /// The cluster's own ranges and other private ones: machines do not reach them.
    pub closed_ranges: Vec<Cidr>,
    /// Namespace of the cluster's DNS pods.
    pub dns_namespace: DnsLabel,
    /// Labels of the cluster's DNS pods.
    pub dns_labels: BTreeMap<String, String>,
    /// Address of the node-local DNS cache.
    pub node_local_dns: Option<IpAddr>,
    /// From where SSH is let in.
    pub ssh_sources: Vec<SshSource>,
    /// Quota of users that set none.
    pub quota: Option<ValidQuota>,
    /// The largest machine.
    pub limits: Limits,
    /// How many virtual CPUs KubeVirt counts as one.
    pub cpu_allocation_ratio: i64,
    /// Whether a machine needs a namespace that a KiteUser owns.
    pub require_user: bool,
}

/// One place from which SSH is let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SshSource {
    /// A range of addresses.
    Range(Cidr),
    /// The pods of a namespace.
    Namespace(DnsLabel),
}

/// The largest machine, and how many clones run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Virtual CPUs.
    pub cpu: i64,
    /// Memory.
    pub memory: Bytes,
    /// Disk.
    pub disk: Bytes,
    /// Clones of one image that are under way at the same time.
    pub clones_per_image: i64,
}

/// Namespaces that are never a user's, whatever the platform says (rule U-2). That of Kite
/// itself is known to the process and reserved by [`ValidPlatform::reserve`].
const RESERVED_NAMESPACES: [&str; 2] = ["default", "kubevirt"];
/// Prefixes under which people expect the operator of the domain (SE8).
const RESERVED_PREFIXES: [&str; 3] = ["admin", "api", "www"];

impl Default for ValidPlatform {
    /// What holds without a KitePlatform. A test keeps it equal to the defaults of kite-api.
    fn default() -> Self {
        let network = PlatformNetwork::default();
        let image_namespace = DnsLabel::fixed("kite-images");
        let dns_namespace = DnsLabel::fixed("kube-system");
        let mut reserved: BTreeSet<_> = RESERVED_NAMESPACES.map(DnsLabel::fixed).into();
        reserved.extend([
            image_namespace.clone(),
            dns_namespace.clone(),
            DnsLabel::fixed("cdi"),
        ]);
        Self {
            base_domain: None,
            ingress_class: None,
            ingress_namespace: None,
            ingress_tls: IngressTls::None,
            storage_class: None,
            image_namespace,
            reserved_namespaces: reserved,
            reserved_prefixes: RESERVED_PREFIXES.map(DnsLabel::fixed).into(),
            closed_ranges: Vec::new(),
            dns_namespace,
            dns_labels: network.dns_pods(),
            node_local_dns: Some(IpAddr::V4(Ipv4Addr::new(169, 254, 20, 10))),
            ssh_sources: Vec::new(),
            quota: None,
            limits: Limits {
                cpu: 64,
                memory: Bytes::mebi(256 << 10),
                disk: Bytes::mebi(4 << 20),
                clones_per_image: 10,
            },
            cpu_allocation_ratio: 10,
            require_user: false,
        }
    }
}

impl ValidPlatform {
    /// Checks a KitePlatform's spec.
    pub fn parse(spec: &KitePlatformSpec) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let p = &mut problems;
        let name = |text: &Option<String>| text.as_deref().map(DnsName::parse);
        let base_domain = p.note_some("spec.baseDomain", name(&spec.base_domain));
        let ingress_class = p.note_some("spec.ingress.className", name(&spec.ingress.class_name));
        let controller = spec
            .ingress
            .controller_namespace
            .as_deref()
            .map(DnsLabel::parse);
        let ingress_namespace = p.note_some("spec.ingress.controllerNamespace", controller);
        let storage_class = p.note_some("spec.storageClassName", name(&spec.storage_class_name));
        let image_namespace = p.note(
            "spec.imageNamespace",
            DnsLabel::parse(&spec.image_namespace),
        );
        let prefixes = p.note_all(
            "spec.reservedDomainPrefixes",
            &spec.reserved_domain_prefixes,
            |t| DnsLabel::parse(t),
        );
        let reserved = p.note_all("spec.reservedNamespaces", &spec.reserved_namespaces, |t| {
            DnsLabel::parse(t)
        });
        let quota = spec.quota.as_ref().and_then(|q| {
            ValidQuota::parse("spec.quota", q)
                .map_err(|e| p.append(e))
                .ok()
        });
        let network = Network::parse(p, &spec.network);
        let limits = limits(p, &spec.limits);
        if spec.cpu_allocation_ratio < 1 {
            p.add(
                "spec.cpuAllocationRatio",
                Wrong::TooSmall {
                    least: 1.to_string(),
                },
            );
        }
        let platform =
            image_namespace
                .zip(network)
                .zip(limits)
                .map(|((image_namespace, network), limits)| {
                    let mut platform = Self {
                        base_domain,
                        ingress_class,
                        ingress_namespace,
                        ingress_tls: spec.ingress.tls,
                        storage_class,
                        image_namespace: image_namespace.clone(),
                        reserved_namespaces: RESERVED_NAMESPACES.map(DnsLabel::fixed).into(),
                        reserved_prefixes: RESERVED_PREFIXES.map(DnsLabel::fixed).into(),
                        closed_ranges: network.closed,
                        dns_namespace: network.dns_namespace.clone(),
                        dns_labels: spec.network.dns_pods(),
                        node_local_dns: network.node_local_dns,
                        ssh_sources: network.ssh_sources,
                        quota,
                        limits,
                        cpu_allocation_ratio: i64::from(spec.cpu_allocation_ratio),
                        require_user: spec.require_user,
                    };
                    platform.reserved_prefixes.extend(prefixes);
                    platform.reserve(reserved);
                    platform.reserve([
                        image_namespace,
                        network.dns_namespace,
                        network.cdi_namespace,
                    ]);
                    platform
                });
        problems.finish(platform)
    }

    /// Keeps further namespaces from users: that of Kite itself, which only the process knows.
    pub fn reserve(&mut self, namespaces: impl IntoIterator<Item = DnsLabel>) {
        self.reserved_namespaces.extend(namespaces);
    }

    /// The host of a machine with the prefix, when there is a base domain.
    pub fn host(&self, prefix: &DnsLabel) -> Option<Result<DnsName, Wrong>> {
        let base = self.base_domain.as_ref()?;
        Some(DnsName::parse(&format!("{prefix}.{base}")))
    }
}

/// The checked part about networks.
struct Network {
    closed: Vec<Cidr>,
    dns_namespace: DnsLabel,
    cdi_namespace: DnsLabel,
    node_local_dns: Option<IpAddr>,
    ssh_sources: Vec<SshSource>,
}

impl Network {
    fn parse(p: &mut Problems, spec: &PlatformNetwork) -> Option<Self> {
        let mut closed = p.note_all("spec.network.clusterRanges", &spec.cluster_ranges, |t| {
            closed_range(t)
        });
        closed.extend(
            p.note_all("spec.network.privateRanges", &spec.private_ranges, |t| {
                closed_range(t)
            }),
        );
        closed.sort();
        closed.dedup();
        let dns_namespace = p.note(
            "spec.network.dnsNamespace",
            DnsLabel::parse(&spec.dns_namespace),
        );
        let cdi_namespace = p.note(
            "spec.network.cdiNamespace",
            DnsLabel::parse(&spec.cdi_namespace),
        );
        if !spec.dns_labels.iter().all(|(k, v)| is_label_pair(k, v)) {
            p.add("spec.network.dnsLabels", Wrong::DnsLabels);
        }
        let address = Some(spec.node_local_dns.as_str())
            .filter(|a| !a.is_empty())
            .map(str::parse::<IpAddr>);
        let node_local_dns = p.note_some(
            "spec.network.nodeLocalDns",
            address.map(|a| a.map_err(|_| Wrong::Address)),
        );
        let ssh_sources = p.note_all("spec.network.sshSources", &spec.ssh_sources, |s| {
            match (&s.cidr, &s.namespace) {
                (Some(cidr), None) => Cidr::parse(cidr).map(SshSource::Range),
                (None, Some(namespace)) => DnsLabel::parse(namespace).map(SshSource::Namespace),
                _ => Err(Wrong::SshSource),
            }
        });
        let (dns_namespace, cdi_namespace) = dns_namespace.zip(cdi_namespace)?;
        Some(Self {
            closed,
            dns_namespace,
            cdi_namespace,
            node_local_dns,
            ssh_sources,
        })
    }
}

/// A range to be cut out of the internet, so it cannot be all of it.
fn closed_range(text: &str) -> Result<Cidr, Wrong> {
    let cidr = Cidr::parse(text)?;
    if cidr.is_everything() {
        return Err(Wrong::Everything);
    }
    Ok(cidr)
}

/// Whether a pair can stand in a selector.
fn is_label_pair(key: &str, value: &str) -> bool {
    let edge = |t: &str| {
        t.starts_with(|c: char| c.is_ascii_alphanumeric())
            && t.ends_with(|c: char| c.is_ascii_alphanumeric())
    };
    let text = |t: &str| {
        t.len() <= 63
            && edge(t)
            && t.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    let (prefix, name) = key
        .split_once('/')
        .map_or((None, key), |(p, n)| (Some(p), n));
    prefix.is_none_or(|p| DnsName::parse(p).is_ok())
        && text(name)
        && (value.is_empty() || text(value))
}

fn limits(p: &mut Problems, spec: &PlatformLimits) -> Option<Limits> {
    let memory = p.note(
        "spec.limits.memory",
        Bytes::parse(&spec.memory, Bytes::mebi(32), Bytes::mebi(12 << 20)),
    );
    let disk = p.note(
        "spec.limits.disk",
        Bytes::parse(&spec.disk, Bytes::mebi(64), Bytes::mebi(64 << 20)),
    );
    if spec.cpu < 1 || spec.clones_per_image < 1 {
        p.add("spec.limits", Wrong::NoRoom);
    }
    let (memory, disk) = memory.zip(disk)?;
    Some(Limits {
        cpu: i64::from(spec.cpu),
        memory,
        disk,
        clones_per_image: i64::from(spec.clones_per_image),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // P-1
    #[test]
    fn an_absent_platform_means_the_defaults_of_the_schema() {
        assert_eq!(
            ValidPlatform::parse(&KitePlatformSpec::default()),
            Ok(ValidPlatform::default())
        );
    }

    // P-3
    #[test]
    fn each_wrong_setting_is_named() {
        let mut spec = KitePlatformSpec {
            base_domain: Some("a..b".to_owned()),
            image_namespace: "A".to_owned(),
            cpu_allocation_ratio: 0,
            ..KitePlatformSpec::default()
        };
        spec.network.cluster_ranges = vec!["10.0.0.0/8".to_owned(), "0.0.0.0/0".to_owned()];
        spec.network.node_local_dns = "here".to_owned();
        spec.limits.memory = "1".into();
        let problems = ValidPlatform::parse(&spec).unwrap_err();
        let fields: Vec<&str> = problems.all().iter().map(|p| p.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "spec.baseDomain",
                "spec.imageNamespace",
                "spec.network.clusterRanges[1]",
                "spec.network.nodeLocalDns",
                "spec.limits.memory",
                "spec.cpuAllocationRatio"
            ]
        );
    }

    // U-2
    #[test]
    fn the_namespaces_of_the_images_and_of_cdi_are_reserved_wherever_they_are() {
        let mut spec = KitePlatformSpec {
            image_namespace: "pictures".to_owned(),
            reserved_namespaces: vec!["ours".to_owned()],
            ..KitePlatformSpec::default()
        };
        spec.network.cdi_namespace = "importer".to_owned();
        let platform = ValidPlatform::parse(&spec).unwrap();
        for name in [
            "pictures",
            "importer",
            "ours",
            "default",
            "kubevirt",
            "kube-system",
        ] {
            assert!(
                platform
                    .reserved_namespaces
                    .contains(&DnsLabel::parse(name).unwrap()),
                "{name}"
            );
        }
    }
}
