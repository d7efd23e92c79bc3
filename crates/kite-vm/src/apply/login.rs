//! The login Secrets (rules V-12, C-20).
//!
//! Secrets are not watched. They are written when their rendered form changes,
//! and looked at before each start of a machine; in between a hash on the
//! VirtualMachine tells that nothing about them has changed. The hash covers
//! what the specification says and the version of a password's Secret, nothing
//! derived from a secret.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::Secret;
use kite_api::labels::RENDERED_HASH;
use kite_render::hash::hash;
use kite_render::machine::{
    KeyPair, Login as Rendered, Password, cloud_init, cloud_init_name, public_key_of, ssh_key,
    ssh_key_name,
};
use kite_render::validate::{CryptHash, SshPublicKey, ValidMachine};
use kite_runtime::apply::{Place, WriteError};
use kite_runtime::{Cache, Class, Key, Refusal};
use kube::Api;
use kube::core::{ObjectMeta, PartialObjectMetaExt as _};

use super::{Trouble, machine, previous};
use crate::controller::Meta;
use crate::observe::{Observed, annotation};
use crate::reconcile::VmPass;

/// A login whose Secrets are in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// What stands on the VirtualMachine: the specification's hash and the password's version.
    pub hash: String,
}

/// What this process has written. Locked for one map operation, by passes.
pub struct Logins {
    /// Metadata of Secrets, from the answers to own writes only.
    pub secrets: Cache<Meta<Secret>>,
    done: Mutex<HashMap<String, Login>>,
}

impl Default for Logins {
    fn default() -> Self {
        Self {
            secrets: Cache::new(|_| 0),
            done: Mutex::default(),
        }
    }
}

impl Logins {
    fn done(&self, uid: &str) -> Option<Login> {
        self.done
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(uid)
            .cloned()
    }

    fn remember(&self, uid: &str, login: &Login) {
        self.done
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(uid.to_owned(), login.clone());
    }

    /// Forgets a machine that is gone.
    pub fn forget(&self, uid: &str) {
        self.done
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(uid);
    }
}

/// The part of the hash that the specification decides.
fn input_hash(machine: &ValidMachine) -> Result<String, Trouble> {
    let keys: Vec<&str> = machine.ssh_keys.iter().map(SshPublicKey::as_str).collect();
    let password = machine
        .password
        .as_ref()
        .map(|p| (p.secret.as_str(), p.key.as_str()));
    hash(&(
        machine.owner.name.as_str(),
        machine.login_user.as_str(),
        keys,
        password,
    ))
    .map_err(unserialisable)
}

/// Makes sure that the Secrets are in place, and tells their hash. At rest this asks the server nothing.
pub async fn ensure(
    pass: &VmPass,
    seen: &Observed,
    machine: &ValidMachine,
    starts: bool,
) -> Result<Login, Trouble> {
    let input = input_hash(machine)?;
    let uid = seen.owner.uid.as_str();
    let known = match seen.own_vm() {
        Some(vm) => machine::login_hash(vm).map(|hash| Login {
            hash: hash.to_owned(),
        }),
        None => pass.world.logins.done(uid),
    };
    if let Some(known) =
        known.filter(|k| !starts && k.hash.split('.').next() == Some(input.as_str()))
    {
        return Ok(known);
    }
    let written = write(pass, seen, machine, starts).await;
    let version = written.map_err(|trouble| prepared(seen, trouble))?;
    let login = Login {
        hash: version.map_or_else(|| input.clone(), |v| format!("{input}.{v}")),
    };
    pass.world.logins.remember(uid, &login);
    Ok(login)
}

/// Without the rights on Secrets the namespace was not prepared (rule C-20).
fn prepared(seen: &Observed, trouble: Trouble) -> Trouble {
    if trouble.class != Class::Forbidden {
        return trouble;
    }
    let namespace = &seen.key.namespace;
    Trouble {
        reason: "NamespaceNotPrepared",
        message: format!(
            "kite-vm may not write Secrets in namespace {namespace}; make a KiteUser with this namespace, or run: kubectl create rolebinding kite-vm-secrets -n {namespace} --clusterrole=kite-vm-secrets --serviceaccount=kite-system:kite-vm"
        ),
        ..trouble
    }
}

/// Writes what differs. The answer is the version of the password's Secret.
async fn write(
    pass: &VmPass,
    seen: &Observed,
    machine: &ValidMachine,
    starts: bool,
) -> Result<Option<String>, Trouble> {
    let api: Api<Secret> = Api::namespaced(pass.writer.client().clone(), &seen.key.namespace);
    let keys = if machine.ssh_keys.is_empty() {
        vec![generated(pass, seen, &api).await?]
    } else {
        machine.ssh_keys.clone()
    };
    let password = password(seen, machine, &api).await?;
    let rendered = Rendered {
        keys: &keys,
        password: password
            .as_ref()
            .map(|(hash, version)| Password { hash, version }),
    };
    let wanted = cloud_init(machine, &rendered).map_err(unserialisable)?;
    let place = Place {
        api: Api::namespaced(pass.writer.client().clone(), &seen.key.namespace),
        cache: &pass.world.logins.secrets,
        key: Key::new(&seen.key.namespace, cloud_init_name(&seen.owner)),
    };
    if starts || place.cache.get(&place.key).is_some() {
        refresh(pass, &place).await?;
    }
    let wanted_hash = annotation(&wanted.metadata, RENDERED_HASH).map(str::to_owned);
    let same =
        |live: &Meta<Secret>| annotation(&live.metadata, RENDERED_HASH) == wanted_hash.as_deref();
    match pass
        .writer
        .ensure(&place, &wanted, |m| seen.owns(m), same)
        .await
    {
        Err(error @ WriteError::NameConflict { .. }) => {
            let meta = pass.writer.live(&place).await?.map(|s| s.metadata);
            return Err(in_the_way(seen, meta.as_ref(), error));
        }
        ensured => drop(ensured?),
    }
    Ok(password.map(|(_, version)| version))
}

/// What was remembered of a Secret that nobody watches may be old; this is the look before a start.
async fn refresh(pass: &VmPass, place: &Place<'_, Meta<Secret>>) -> Result<(), WriteError> {
    match pass.writer.live(place).await? {
        Some(live) => {
            place.cache.remember(live);
        }
        None => {
            if let Some(gone) = place.cache.get(&place.key) {
                place
                    .cache
                    .forget(&place.key, gone.metadata.uid.as_deref().unwrap_or_default());
            }
        }
    }
    Ok(())
}

/// The public half of the generated pair: made once, never overwritten, and never made
/// anew behind a guest that knows the old one.
async fn generated(
    pass: &VmPass,
    seen: &Observed,
    api: &Api<Secret>,
) -> Result<SshPublicKey, Trouble> {
    let name = ssh_key_name(&seen.owner);
    let recorded = seen.status().ssh_key_secret_name.is_some();
    if !recorded {
        let pair = KeyPair::generate(&seen.owner).map_err(unusable)?;
        let wanted = ssh_key(&seen.owner, &pair).map_err(unusable)?;
        let place = Place {
            api: Api::<Meta<Secret>>::namespaced(pass.writer.client().clone(), &seen.key.namespace),
            cache: &pass.world.logins.secrets,
            key: Key::new(&seen.key.namespace, name.clone()),
        };
        match pass.writer.create(&place, &wanted).await {
            Ok(_) => return pair.public().map_err(unusable),
            // The stored one counts, whoever of us made it (fault F-12).
            Err(error) if error.refusal() == Some(Refusal::Conflict) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let Some(stored) = get(api, &name).await? else {
        return Err(if recorded {
            lost(&name)
        } else {
            Trouble::waiting(
                "ApplyFailed",
                format!("Secret {name} came and went; it is looked for again"),
            )
        });
    };
    // Remembered, so that its deletion need not look again.
    let known = stored.metadata.clone().into_request_partial();
    pass.world.logins.secrets.remember(known);
    if !seen.owns(&stored.metadata) {
        let conflict = WriteError::NameConflict {
            kind: "Secret".into(),
            name,
        };
        return Err(in_the_way(seen, Some(&stored.metadata), conflict));
    }
    public_key_of(&stored).map_err(unusable)
}

/// A Secret that is not ours: of an earlier machine, then the garbage collector takes it soon and
/// no watch tells (rule V-22); or somebody else's.
fn in_the_way(seen: &Observed, meta: Option<&ObjectMeta>, conflict: WriteError) -> Trouble {
    if meta.is_some_and(|meta| previous::is_of_previous(seen, meta)) {
        return Trouble {
            class: Class::NotReady,
            ..previous::waits(seen, "Secret")
        };
    }
    conflict.into()
}

fn lost(name: &str) -> Trouble {
    Trouble::stalled(
        "SshKeyLost",
        format!(
            "Secret {name} with the generated SSH key is gone, and the guest knows no other key; put it back, or give keys in spec.sshAuthorizedKeys"
        ),
    )
}

async fn password(
    seen: &Observed,
    machine: &ValidMachine,
    api: &Api<Secret>,
) -> Result<Option<(CryptHash, String)>, Trouble> {
    let Some(reference) = &machine.password else {
        return Ok(None);
    };
    let (name, key) = (reference.secret.as_str(), reference.key.as_str());
    let Some(secret) = get(api, name).await? else {
        let namespace = &seen.key.namespace;
        return Err(Trouble::waiting(
            "PasswordNotFound",
            format!(
                "there is no Secret {name} in namespace {namespace}; make it with a crypt hash under the key {key}"
            ),
        ));
    };
    let Some(bytes) = secret.data.as_ref().and_then(|d| d.get(key)) else {
        return Err(Trouble::waiting(
            "PasswordNotFound",
            format!("Secret {name} has no key {key}; add a crypt hash under it"),
        ));
    };
    let hash = CryptHash::parse(&bytes.0).map_err(|wrong| {
        Trouble::waiting(
            "PasswordInvalid",
            format!("key {key} of Secret {name} {wrong}"),
        )
    })?;
    Ok(Some((
        hash,
        secret.metadata.resource_version.unwrap_or_default(),
    )))
}

async fn get(api: &Api<Secret>, name: &str) -> Result<Option<Secret>, Trouble> {
    api.get_opt(name).await.map_err(|source| {
        WriteError::Api {
            doing: "read",
            kind: "Secret".into(),
            name: name.to_owned(),
            source,
        }
        .into()
    })
}

#[allow(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn unusable(error: kite_render::machine::KeyError) -> Trouble {
    Trouble::stalled("SshKeyUnusable", error.to_string())
}

#[allow(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn unserialisable(error: serde_json::Error) -> Trouble {
    Trouble::stalled("Rejected", format!("the login cannot be written: {error}"))
}
