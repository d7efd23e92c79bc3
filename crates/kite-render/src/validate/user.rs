//! A KiteUser, checked.
//!
//! Whether its namespace is free or another's needs the cluster and is not asked here.

use kite_api::user::{KiteUser, Protocol, SubjectKind, UserNetwork, UserSubject};

use super::{Cidr, DnsLabel, Problems, Uid, ValidPlatform, ValidQuota, Wrong, is_hidden};

/// A user that cannot be wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidUser {
    /// Who it is.
    pub owner: UserOwner,
    /// The user's namespace.
    pub namespace: DnsLabel,
    /// The user's quota, else the platform's, else none (rule U-6).
    pub quota: Option<ValidQuota>,
    /// Namespaces whose pods may reach the user's machines.
    pub allow_from: Vec<DnsLabel>,
    /// Destinations that are open although they lie in a private range.
    pub extra_egress: Vec<Egress>,
    /// Who works in the namespace.
    pub subjects: Vec<Subject>,
}

/// A KiteUser by name and UID, which binds what is made for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserOwner {
    /// Its name.
    pub name: DnsLabel,
    /// Its UID.
    pub uid: Uid,
}

/// One destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Egress {
    /// The range.
    pub cidr: Cidr,
    /// Its ports; none means all.
    pub ports: Vec<EgressPort>,
}

/// One port of a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EgressPort {
    /// Transport protocol.
    pub protocol: Protocol,
    /// Number.
    pub port: u16,
}

/// A user or group of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Which of the two.
    pub kind: SubjectKind,
    /// Its name.
    pub name: String,
}

impl UserOwner {
    /// The identity of a live object, which holds even when its spec does not.
    pub fn of(user: &KiteUser) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let text = |t: &Option<String>| t.clone().unwrap_or_default();
        let name = problems.note("metadata.name", DnsLabel::parse(&text(&user.metadata.name)));
        let uid = problems.note("metadata.uid", Uid::parse(&text(&user.metadata.uid)));
        problems.finish(name.zip(uid).map(|(name, uid)| Self { name, uid }))
    }
}

impl ValidUser {
    /// Checks a KiteUser against the platform.
    pub fn parse(user: &KiteUser, platform: &ValidPlatform) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let p = &mut problems;
        let spec = &user.spec;
        let owner = UserOwner::of(user).map_err(|e| p.append(e)).ok();
        let namespace = p.note("spec.namespace", own_namespace(&spec.namespace, platform));
        let quota = match &spec.quota {
            Some(quota) => ValidQuota::parse("spec.quota", quota)
                .map_err(|e| p.append(e))
                .ok(),
            None => platform.quota.clone(),
        };
        let none = UserNetwork::default();
        let network = spec.network.as_ref().unwrap_or(&none);
        let allow_from = p.note_all(
            "spec.network.allowFromNamespaces",
            &network.allow_from_namespaces,
            |t| DnsLabel::parse(t),
        );
        let mut extra_egress = Vec::new();
        for (i, rule) in network.extra_egress.iter().enumerate() {
            let field = format!("spec.network.extraEgress[{i}]");
            let cidr = p.note(&format!("{field}.cidr"), Cidr::parse(&rule.cidr));
            let ports =
                p.note_all(
                    &format!("{field}.ports"),
                    &rule.ports,
                    |port| match u16::try_from(port.port) {
                        Ok(number) if number > 0 => Ok(EgressPort {
                            protocol: port.protocol,
                            port: number,
                        }),
                        _ => Err(Wrong::Port),
                    },
                );
            extra_egress.extend(cidr.map(|cidr| Egress { cidr, ports }));
        }
        let subjects = p.note_all("spec.subjects", &spec.subjects, subject);
        problems.finish(owner.zip(namespace).map(|(owner, namespace)| Self {
            owner,
            namespace,
            quota,
            allow_from,
            extra_egress,
            subjects,
        }))
    }
}

/// A namespace that may be a user's (rule U-2).
fn own_namespace(text: &str, platform: &ValidPlatform) -> Result<DnsLabel, Wrong> {
    let namespace = DnsLabel::parse(text)?;
    if text.starts_with("kube-") || platform.reserved_namespaces.contains(&namespace) {
        return Err(Wrong::ReservedNamespace {
            namespace: text.to_owned(),
        });
    }
    Ok(namespace)
}

fn subject(subject: &UserSubject) -> Result<Subject, Wrong> {
    let UserSubject { kind, name } = subject;
    if name.is_empty() || name.len() > 253 || name.chars().any(is_hidden) {
        return Err(Wrong::SubjectName);
    }
    // Binding these would open the namespace to people whom nobody authenticated.
    if matches!(name.as_str(), "system:anonymous" | "system:unauthenticated") {
        return Err(Wrong::AnySubject { name: name.clone() });
    }
    Ok(Subject {
        kind: *kind,
        name: name.clone(),
    })
}

#[cfg(test)]
mod tests {
    use kite_api::user::{EgressRule, KiteUserSpec};

    use super::*;

    fn user(spec: KiteUserSpec) -> KiteUser {
        let mut user = KiteUser::new("alice", spec);
        user.metadata.uid = Some("u-1".to_owned());
        user
    }

    fn spec(namespace: &str) -> KiteUserSpec {
        KiteUserSpec {
            namespace: namespace.to_owned(),
            quota: None,
            network: None,
            subjects: Vec::new(),
        }
    }

    // U-2
    #[test]
    fn a_namespace_of_the_platform_is_refused_with_words_that_help() {
        let platform = ValidPlatform::default();
        assert!(ValidUser::parse(&user(spec("alice")), &platform).is_ok());
        for bad in [
            "default",
            "kube-system",
            "kube-x",
            "kubevirt",
            "cdi",
            "kite-images",
            "",
            "A",
            "a.b",
            "../x",
            "*",
        ] {
            let problems = ValidUser::parse(&user(spec(bad)), &platform).unwrap_err();
            assert_eq!(problems.all()[0].field, "spec.namespace", "{bad}");
        }
        let words = ValidUser::parse(&user(spec("cdi")), &platform)
            .unwrap_err()
            .to_string();
        assert!(words.contains("of the user's own"), "{words}");
    }

    // C-17
    #[test]
    fn every_wrong_field_is_told_at_once() {
        let mut bad = spec("alice");
        let rule = EgressRule {
            cidr: "10.0.0.0/99".to_owned(),
            ports: vec![kite_api::user::EgressPort {
                protocol: Protocol::TCP,
                port: 70_000,
            }],
        };
        bad.network = Some(UserNetwork {
            allow_from_namespaces: vec!["ok".to_owned(), "Not".to_owned()],
            extra_egress: vec![rule],
        });
        bad.subjects = vec![
            UserSubject {
                kind: SubjectKind::Group,
                name: "system:unauthenticated".to_owned(),
            },
            UserSubject {
                kind: SubjectKind::User,
                name: "a\u{202e}b".to_owned(),
            },
        ];
        let problems = ValidUser::parse(&user(bad), &ValidPlatform::default()).unwrap_err();
        let fields: Vec<&str> = problems.all().iter().map(|p| p.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "spec.network.allowFromNamespaces[1]",
                "spec.network.extraEgress[0].cidr",
                "spec.network.extraEgress[0].ports[0]",
                "spec.subjects[0]",
                "spec.subjects[1]"
            ]
        );
    }
}
