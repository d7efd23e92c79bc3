//! Step 3: whose a namespace is, and what should stand in it. Pure.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{LimitRange, Namespace, ResourceQuota};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::RoleBinding;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kite_api::KiteUser;
use kite_api::labels::{USER, USER_UID};
use kite_render::user::{self, COUNT_KEY, ServiceAccount};
use kite_render::validate::{DnsLabel, UserOwner, ValidPlatform, ValidUser};

/// How a user stands to the namespace it names (rule U-3).
#[derive(Clone, Debug)]
pub enum Standing {
    /// (a) It is not there, as far as the cache knows.
    Absent,
    /// (b) It is bound to no KiteUser, whatever its labels say.
    Foreign,
    /// (c) It is bound to this user.
    Ours,
    /// (d) It is bound to another KiteUser, whose spec rules it.
    Shared(Arc<KiteUser>),
    /// (e) It is bound to an earlier KiteUser of the same name.
    Left,
    /// (f) It is bound and on its way out.
    Terminating,
    /// (g) It is bound to a KiteUser of another name that is gone.
    Orphaned {
        /// That name, as far as the label tells.
        of: String,
    },
}

/// Judges the namespace as it was last seen. `by_uid` finds KiteUsers that exist.
pub fn judge(
    namespace: Option<&ObjectMeta>,
    user: &KiteUser,
    by_uid: impl Fn(&str) -> Option<Arc<KiteUser>>,
) -> Standing {
    let Some(namespace) = namespace else {
        return Standing::Absent;
    };
    let Some(uid) = bound_uid(namespace) else {
        return Standing::Foreign;
    };
    if namespace.deletion_timestamp.is_some() {
        return Standing::Terminating;
    }
    if user.metadata.uid.as_deref() == Some(uid) {
        return Standing::Ours;
    }
    if let Some(other) = by_uid(uid) {
        return Standing::Shared(other);
    }
    // The UID is what binds. The label only tells to whom it once belonged, and of this
    // user's name there cannot be another now.
    let of = namespace.labels.as_ref().and_then(|l| l.get(USER));
    match of {
        Some(of) if user.metadata.name.as_ref() == Some(of) => Standing::Left,
        of => Standing::Orphaned {
            of: of.cloned().unwrap_or_default(),
        },
    }
}

/// The UID of the KiteUser to which an object is bound.
pub fn bound_uid(meta: &ObjectMeta) -> Option<&str> {
    let annotations = meta.annotations.as_ref()?;
    annotations
        .get(USER_UID)
        .map(String::as_str)
        .filter(|uid| !uid.is_empty())
}

/// Whether what stands in a user's namespace is Kite's.
///
/// The annotation of any KiteUser binds it: after a hand-over or a restored backup it is that of
/// an earlier one, and what stands in a namespace goes with the namespace. Nobody else writes it.
pub fn is_bound(meta: &ObjectMeta) -> bool {
    bound_uid(meta).is_some()
}

/// What should stand in the namespace of a user to whom it is bound.
#[derive(Clone, Debug)]
pub struct Children {
    /// Its isolation.
    pub policies: [NetworkPolicy; 2],
    /// Its quota.
    pub quota: Option<ResourceQuota>,
    /// What the quota needs.
    pub limit_range: Option<LimitRange>,
    /// kite-vm's right on Secrets.
    pub vm_binding: RoleBinding,
}

impl Children {
    /// Renders them.
    pub fn of(
        user: &ValidUser,
        platform: &ValidPlatform,
        vm_account: &ServiceAccount,
        clones: i64,
    ) -> Self {
        Self {
            policies: user::network_policies(user, platform),
            quota: user::resource_quota(user, platform, clones),
            limit_range: user::limit_range(user),
            vm_binding: user::vm_secrets_role_binding(user, vm_account),
        }
    }
}

/// The namespace of an owner, bound to it.
pub fn namespace_of(owner: &UserOwner, namespace: &DnsLabel) -> Namespace {
    user::namespace(&bare(owner.clone(), namespace.clone()))
}

/// A user of whom nothing is known but who it is: what can be said when its spec cannot be
/// carried out any more.
pub fn bare(owner: UserOwner, namespace: DnsLabel) -> ValidUser {
    ValidUser {
        owner,
        namespace,
        quota: None,
        allow_from: Vec::new(),
        extra_egress: Vec::new(),
        subjects: Vec::new(),
    }
}

/// The name of a user's tenant binding.
pub fn tenant_binding_name(user: &KiteUser) -> String {
    let name = user.metadata.name.as_deref().unwrap_or_default();
    format!("{}{name}", user::TENANT_BINDING_PREFIX)
}

/// Whether the server has taken in a quota as it is written (rules U-6, U-10).
pub fn is_taken_in(quota: &ResourceQuota) -> bool {
    let spec = quota.spec.as_ref().and_then(|s| s.hard.as_ref());
    let status = quota.status.as_ref().and_then(|s| s.hard.as_ref());
    spec.is_some() && spec == status
}

/// Whether machines can be made under a quota that is taken in.
///
/// A quota that counts machines refuses every one of them until their number is known, and the
/// quota controller looks for new kinds every now and then only: in the first minutes after
/// Kite's kinds were installed it may not know this one.
pub fn is_counted(quota: &ResourceQuota) -> bool {
    let status = quota.status.as_ref();
    let hard = status.and_then(|s| s.hard.as_ref());
    let used = status.and_then(|s| s.used.as_ref());
    !hard.is_some_and(|h| h.contains_key(COUNT_KEY))
        || used.is_some_and(|u| u.contains_key(COUNT_KEY))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;
    use kite_api::KiteUserSpec;

    use super::*;

    fn user(name: &str, uid: &str) -> KiteUser {
        let spec = KiteUserSpec {
            namespace: "space".to_owned(),
            quota: None,
            network: None,
            subjects: Vec::new(),
        };
        let mut user = KiteUser::new(name, spec);
        user.metadata.uid = Some(uid.to_owned());
        user
    }

    fn namespace(label: Option<&str>, uid: Option<&str>, going: bool) -> ObjectMeta {
        let pair =
            |key: &str, value: Option<&str>| value.map(|v| [(key.to_owned(), v.to_owned())].into());
        ObjectMeta {
            labels: pair(USER, label),
            annotations: pair(USER_UID, uid),
            deletion_timestamp: going.then_some(Time(Timestamp::UNIX_EPOCH)),
            ..ObjectMeta::default()
        }
    }

    // U-3: one row for each case. A label alone proves nothing (NS2).
    #[test]
    fn a_namespace_is_judged_by_the_uid_that_binds_it() {
        let rows: [(&str, Option<ObjectMeta>); 10] = [
            ("absent", None),
            ("foreign", Some(namespace(None, None, false))),
            ("foreign", Some(namespace(Some("alice"), None, false))),
            ("foreign", Some(namespace(Some("alice"), Some(""), false))),
            ("foreign", Some(namespace(None, None, true))),
            ("ours", Some(namespace(Some("bob"), Some("a1"), false))),
            ("shared", Some(namespace(Some("alice"), Some("b1"), false))),
            ("left", Some(namespace(Some("alice"), Some("a0"), false))),
            (
                "terminating",
                Some(namespace(Some("alice"), Some("a1"), true)),
            ),
            (
                "orphaned",
                Some(namespace(Some("carol"), Some("c0"), false)),
            ),
        ];
        let alice = user("alice", "a1");
        let bob = Arc::new(user("bob", "b1"));
        for (expected, namespace) in rows {
            let by_uid = |uid: &str| (uid == "b1").then(|| Arc::clone(&bob));
            let found = match judge(namespace.as_ref(), &alice, by_uid) {
                Standing::Absent => "absent",
                Standing::Foreign => "foreign",
                Standing::Ours => "ours",
                Standing::Shared(_) => "shared",
                Standing::Left => "left",
                Standing::Terminating => "terminating",
                Standing::Orphaned { .. } => "orphaned",
            };
            assert_eq!(found, expected, "{namespace:?}");
        }
    }

    // C-7 (b)
    #[test]
    fn nothing_that_is_made_for_a_user_carries_an_owner_reference() {
        let platform = ValidPlatform::default();
        let mut object = user("alice", "a1");
        object.spec.quota = Some(kite_api::user::UserQuota {
            cpu: Some(2),
            hard: [("requests.ephemeral-storage".to_owned(), "1Gi".into())].into(),
            ..kite_api::user::UserQuota::default()
        });
        let valid = ValidUser::parse(&object, &platform).unwrap();
        let account = ServiceAccount {
            namespace: valid.namespace.clone(),
            name: valid.namespace.clone(),
        };
        let children = Children::of(&valid, &platform, &account, 1);
        let [one, two] = children.policies;
        let metas = [
            namespace_of(&valid.owner, &valid.namespace).metadata,
            one.metadata,
            two.metadata,
            children.quota.unwrap().metadata,
            children.limit_range.unwrap().metadata,
            children.vm_binding.metadata,
        ];
        for meta in metas {
            assert!(meta.owner_references.is_none(), "{meta:?}");
            assert_eq!(bound_uid(&meta), Some("a1"), "{meta:?}");
            assert!(is_bound(&meta), "{meta:?}");
        }
        assert!(!is_bound(&namespace(Some("alice"), None, false)));
    }

    // U-8: it is looked for, and taken away, under the name under which it was made.
    #[test]
    fn the_tenant_binding_is_known_by_its_name() {
        let mut object = user("alice", "a1");
        let subject = serde_json::json!([{"kind": "User", "name": "alice@example.org"}]);
        object.spec.subjects = serde_json::from_value(subject).unwrap();
        let valid = ValidUser::parse(&object, &ValidPlatform::default()).unwrap();
        let made = kite_render::user::tenant_role_binding(&valid)
            .unwrap()
            .metadata
            .name;
        assert_eq!(made.as_deref(), Some("kite-tenant-alice"));
        assert_eq!(Some(tenant_binding_name(&object)), made);
    }

    // U-6
    #[test]
    fn a_quota_is_taken_in_when_all_of_it_is_and_counted_when_machines_are() {
        let quota = |spec: &[&str], hard: &[&str], used: &[&str]| -> ResourceQuota {
            let map = |keys: &[&str]| -> serde_json::Map<_, _> {
                keys.iter().map(|k| ((*k).to_owned(), "1".into())).collect()
            };
            let object = serde_json::json!({
                "metadata": {}, "spec": {"hard": map(spec)},
                "status": {"hard": map(hard), "used": map(used)}
            });
            serde_json::from_value(object).unwrap()
        };
        let both = ["pods", COUNT_KEY];
        assert!(is_taken_in(&quota(&both, &both, &[])));
        assert!(!is_taken_in(&quota(&both, &["pods"], &[])));
        assert!(!is_taken_in(&ResourceQuota::default()));
        assert!(is_counted(&quota(&both, &both, &both)));
        assert!(!is_counted(&quota(&both, &both, &["pods"])));
        assert!(is_counted(&quota(&["pods"], &["pods"], &[])));
    }
}
