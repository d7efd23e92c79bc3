//! A KiteVirtualMachine, checked.
//!
//! Image, host, namespace and storage class are only checked as names here;
//! whether they exist and are free needs the cluster.

use kite_api::machine::{
    DeletionPolicy, KiteVirtualMachine, KiteVirtualMachineSpec, OnGuestShutdown, PowerState,
};

use super::{
    Bytes, DnsLabel, DnsName, LoginUser, MachineName, Problems, SecretKey, SshPublicKey, Uid,
    ValidPlatform, Wrong,
};

/// A machine that cannot be wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidMachine {
    /// Who it is.
    pub owner: MachineOwner,
    /// Virtual CPUs.
    pub cpu: i64,
    /// Memory of the guest.
    pub memory: Bytes,
    /// Size of the disk.
    pub disk: Bytes,
    /// Name of the image.
    pub image: DnsName,
    /// Whether it should run.
    pub power: PowerState,
    /// What happens when the guest shuts itself down.
    pub on_guest_shutdown: OnGuestShutdown,
    /// First label of the host name, if one was asked for.
    pub domain_prefix: Option<DnsLabel>,
    /// The user that cloud-init makes.
    pub login_user: LoginUser,
    /// Public keys, each once.
    pub ssh_keys: Vec<SshPublicKey>,
    /// Where the password hash is.
    pub password: Option<PasswordRef>,
    /// The storage class that the user asked for.
    pub storage_class: Option<DnsName>,
    /// What becomes of the disk.
    pub deletion_policy: DeletionPolicy,
}

/// A KiteVirtualMachine by namespace, name and UID, which its children carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineOwner {
    /// Its namespace.
    pub namespace: DnsLabel,
    /// Its name.
    pub name: MachineName,
    /// Its UID.
    pub uid: Uid,
}

/// Where a password hash is, in the machine's own namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasswordRef {
    /// The Secret.
    pub secret: DnsName,
    /// The key in it.
    pub key: SecretKey,
}

/// The least memory with which a Linux guest boots, as in the schema.
const LEAST_MEMORY: Bytes = Bytes::mebi(32);
/// The least disk, as in the schema.
const LEAST_DISK: Bytes = Bytes::mebi(64);

impl MachineOwner {
    /// The identity of a live object, which holds even when its spec does not.
    pub fn of(machine: &KiteVirtualMachine) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let text = |t: &Option<String>| t.clone().unwrap_or_default();
        let meta = &machine.metadata;
        let namespace = problems.note(
            "metadata.namespace",
            DnsLabel::parse(&text(&meta.namespace)),
        );
        let name = problems.note("metadata.name", MachineName::parse(&text(&meta.name)));
        let uid = problems.note("metadata.uid", Uid::parse(&text(&meta.uid)));
        problems.finish(
            namespace
                .zip(name)
                .zip(uid)
                .map(|((namespace, name), uid)| Self {
                    namespace,
                    name,
                    uid,
                }),
        )
    }
}

impl ValidMachine {
    /// Checks a KiteVirtualMachine against the platform's limits.
    pub fn parse(machine: &KiteVirtualMachine, platform: &ValidPlatform) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let p = &mut problems;
        let spec = &machine.spec;
        let limits = &platform.limits;
        let owner = MachineOwner::of(machine).map_err(|e| p.append(e)).ok();
        let cpu = p.note("spec.cpu", cpu(spec.cpu, limits.cpu));
        let memory = p.note(
            "spec.memory",
            Bytes::parse(&spec.memory, LEAST_MEMORY, limits.memory),
        );
        let disk = p.note(
            "spec.disk",
            Bytes::parse(&spec.disk, LEAST_DISK, limits.disk),
        );
        let image = p.note("spec.image", DnsName::parse(&spec.image));
        let prefix = spec
            .domain_prefix
            .as_deref()
            .map(|t| domain_prefix(t, platform));
        let domain_prefix = p.note_some("spec.domainPrefix", prefix);
        let login_user = p.note("spec.loginUser", LoginUser::parse(&spec.login_user));
        let ssh_keys = ssh_keys(p, spec);
        let password = password(p, spec);
        let class = spec.storage_class_name.as_deref().map(DnsName::parse);
        let storage_class = p.note_some("spec.storageClassName", class);
        let numbers = cpu.zip(memory).zip(disk);
        let valid = owner.zip(numbers).zip(image.zip(login_user)).map(
            |((owner, ((cpu, memory), disk)), (image, login_user))| Self {
                owner,
                cpu,
                memory,
                disk,
                image,
                power: spec.power_state,
                on_guest_shutdown: spec.on_guest_shutdown,
                domain_prefix,
                login_user,
                ssh_keys,
                password,
                storage_class,
                deletion_policy: spec.deletion_policy,
            },
        );
        problems.finish(valid)
    }
}

fn cpu(number: i32, most: i64) -> Result<i64, Wrong> {
    let number = i64::from(number);
    if number < 1 || number > most {
        return Err(Wrong::out_of_bounds(1, most));
    }
    Ok(number)
}

fn domain_prefix(text: &str, platform: &ValidPlatform) -> Result<DnsLabel, Wrong> {
    let prefix = DnsLabel::parse(text)?;
    if platform.reserved_prefixes.contains(&prefix) {
        return Err(Wrong::ReservedPrefix {
            prefix: text.to_owned(),
        });
    }
    match platform.host(&prefix) {
        Some(Err(_)) => Err(Wrong::LongPrefix),
        _ => Ok(prefix),
    }
}

fn ssh_keys(p: &mut Problems, spec: &KiteVirtualMachineSpec) -> Vec<SshPublicKey> {
    let parsed = p.note_all(
        "spec.sshAuthorizedKeys",
        &spec.ssh_authorized_keys,
        |line| SshPublicKey::parse(line),
    );
    let mut keys: Vec<SshPublicKey> = Vec::new();
    for key in parsed {
        if !keys.iter().any(|k| k.is_same_key(&key)) {
            keys.push(key);
        }
    }
    keys
}

fn password(p: &mut Problems, spec: &KiteVirtualMachineSpec) -> Option<PasswordRef> {
    let reference = spec.password_secret_ref.as_ref()?;
    let secret = p.note(
        "spec.passwordSecretRef.name",
        DnsName::parse(&reference.name),
    );
    let key = p.note(
        "spec.passwordSecretRef.key",
        SecretKey::parse(&reference.key),
    );
    secret
        .zip(key)
        .map(|(secret, key)| PasswordRef { secret, key })
}

#[cfg(test)]
mod tests {
    use kite_api::KitePlatformSpec;
    use serde_json::{Value, json};

    use super::*;

    fn machine(edit: &[(&str, Value)]) -> KiteVirtualMachine {
        let mut value = json!({
            "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
            "metadata": {"name": "web", "namespace": "alice", "uid": "u-1"},
            "spec": {"cpu": 2, "memory": "4Gi", "disk": "25Gi", "image": "ubuntu-24.04"}
        });
        for (path, edited) in edit {
            let (parent, key) = path.rsplit_once('/').unwrap();
            value.pointer_mut(parent).unwrap()[key] = edited.clone();
        }
        serde_json::from_value(value).unwrap()
    }

    fn fields(edit: &[(&str, Value)], platform: &ValidPlatform) -> Vec<String> {
        let problems = ValidMachine::parse(&machine(edit), platform)
            .map_or_else(|p| p, |_| Problems::default());
        problems.all().iter().map(|p| p.field.clone()).collect()
    }

    // SE5, SE6, SE10, IN1, IN2, IN3
    #[test]
    fn each_bad_field_is_refused_by_its_name() {
        let platform = ValidPlatform::default();
        assert_eq!(fields(&[], &platform), Vec::<String>::new());
        for (path, bad, field) in [
            ("/spec/cpu", json!(0), "spec.cpu"),
            ("/spec/cpu", json!(65), "spec.cpu"),
            ("/spec/memory", json!("1"), "spec.memory"),
            ("/spec/memory", json!("257Gi"), "spec.memory"),
            ("/spec/disk", json!("16Ei"), "spec.disk"),
            ("/spec/image", json!("ns/name"), "spec.image"),
            ("/spec/image", json!("../x"), "spec.image"),
            ("/spec/image", json!("x\ny: z"), "spec.image"),
            ("/spec/domainPrefix", json!("WWW"), "spec.domainPrefix"),
            ("/spec/domainPrefix", json!("www"), "spec.domainPrefix"),
            ("/spec/domainPrefix", json!("a."), "spec.domainPrefix"),
            ("/spec/domainPrefix", json!("*"), "spec.domainPrefix"),
            ("/spec/domainPrefix", json!("bücher"), "spec.domainPrefix"),
            ("/spec/loginUser", json!("root"), "spec.loginUser"),
            (
                "/spec/sshAuthorizedKeys",
                json!(["no"]),
                "spec.sshAuthorizedKeys[0]",
            ),
            (
                "/spec/storageClassName",
                json!("${x}"),
                "spec.storageClassName",
            ),
            (
                "/spec/passwordSecretRef",
                json!({"name": "a b"}),
                "spec.passwordSecretRef.name",
            ),
            ("/metadata/name", json!("1a"), "metadata.name"),
        ] {
            assert_eq!(fields(&[(path, bad.clone())], &platform), [field], "{bad}");
        }
    }

    // C-17
    #[test]
    fn all_wrong_fields_are_told_at_once_in_words() {
        let platform = ValidPlatform::default();
        let edit = [
            ("/spec/cpu", json!(-1)),
            ("/spec/memory", json!("abc")),
            ("/spec/image", json!("")),
        ];
        let words = ValidMachine::parse(&machine(&edit), &platform)
            .unwrap_err()
            .to_string();
        assert!(
            words.starts_with("spec.cpu must be between 1 and 64; spec.memory cannot be read"),
            "{words}"
        );
        assert!(words.contains("; spec.image must be a DNS name"), "{words}");
    }

    // SE8
    #[test]
    fn a_prefix_must_leave_room_for_the_base_domain() {
        let base = [
            &"b".repeat(63),
            &"c".repeat(63),
            &"d".repeat(63),
            &"e".repeat(40),
        ]
        .map(String::as_str)
        .join(".");
        let spec = KitePlatformSpec {
            base_domain: Some(base),
            ..KitePlatformSpec::default()
        };
        let platform = ValidPlatform::parse(&spec).unwrap();
        assert_eq!(
            fields(&[("/spec/domainPrefix", json!("short"))], &platform),
            Vec::<String>::new()
        );
        assert_eq!(
            fields(&[("/spec/domainPrefix", json!("a".repeat(63)))], &platform),
            ["spec.domainPrefix"]
        );
    }

    // SE7
    #[test]
    fn the_same_key_twice_is_one_key() {
        let key =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";
        let edit = [(
            "/spec/sshAuthorizedKeys",
            json!([format!("{key} a"), format!("{key} b")]),
        )];
        let valid = ValidMachine::parse(&machine(&edit), &ValidPlatform::default()).unwrap();
        assert_eq!(valid.ssh_keys.len(), 1);
    }
}
