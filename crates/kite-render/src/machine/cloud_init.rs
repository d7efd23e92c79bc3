//! The login, as cloud-init reads it at the first boot (rule V-12).
//!
//! The document is a typed struct written as JSON, which is YAML too: quoting is
//! the serialiser's work and no text of a user can become a key. It is minimal
//! and says nothing that only one distribution understands: no shell, no groups,
//! no packages. sudo needs no password, since a machine with keys only has none.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kite_api::labels::RENDERED_HASH;
use serde::Serialize;

use super::cloud_init_name;
use crate::hash::hash;
use crate::meta::{Component, annotate, owned_by_machine};
use crate::validate::{CryptHash, SshPublicKey, ValidMachine};

/// The key of the Secret under which KubeVirt looks for user data.
pub const USER_DATA: &str = "userdata";

/// Goes into the fingerprint: raise it when the document below changes, so that Secrets are written anew.
const FORMAT: u32 = 1;

/// The first line by which cloud-init knows the format.
const HEADER: &str = "#cloud-config\n";

/// How somebody gets in.
#[derive(Clone, Debug)]
pub struct Login<'a> {
    /// The keys: those of the spec, or the generated one.
    pub keys: &'a [SshPublicKey],
    /// The password, if the spec names one.
    pub password: Option<Password<'a>>,
}

/// A password hash as it was last read.
#[derive(Clone, Copy, Debug)]
pub struct Password<'a> {
    /// The hash.
    pub hash: &'a CryptHash,
    /// resourceVersion of the Secret that holds it.
    pub version: &'a str,
}

#[derive(Serialize)]
struct UserData<'a> {
    hostname: &'a str,
    users: [User<'a>; 1],
}

#[derive(Serialize)]
struct User<'a> {
    name: &'a str,
    sudo: &'a str,
    lock_passwd: bool,
    /// Set even when the image already has the user, which `passwd` would not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    hashed_passwd: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ssh_authorized_keys: Vec<&'a str>,
}

/// The Secret that the machine's cloud-init volume points to.
pub fn cloud_init(machine: &ValidMachine, login: &Login) -> Result<Secret, serde_json::Error> {
    let document = UserData {
        hostname: machine.owner.name.as_str(),
        users: [User {
            name: machine.login_user.as_str(),
            sudo: "ALL=(ALL) NOPASSWD:ALL",
            lock_passwd: login.password.is_none(),
            hashed_passwd: login.password.map(|p| p.hash.expose()),
            ssh_authorized_keys: login.keys.iter().map(SshPublicKey::as_str).collect(),
        }],
    };
    let text = format!("{HEADER}{}\n", serde_json::to_string(&document)?);
    let mut metadata = owned_by_machine(
        &machine.owner,
        cloud_init_name(&machine.owner),
        Component::Login,
    );
    annotate(&mut metadata, RENDERED_HASH, &login_hash(machine, login)?);
    Ok(Secret {
        metadata,
        data: Some([(USER_DATA.to_owned(), ByteString(text.into_bytes()))].into()),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    })
}

/// A fingerprint of the login. The password goes in as the version of its Secret,
/// since nothing derived from a secret may stand in an annotation (rule C-18).
pub fn login_hash(machine: &ValidMachine, login: &Login) -> Result<String, serde_json::Error> {
    let keys: Vec<&str> = login.keys.iter().map(SshPublicKey::as_str).collect();
    let version = login.password.map(|p| p.version);
    hash(&(
        FORMAT,
        machine.owner.name.as_str(),
        machine.login_user.as_str(),
        keys,
        version,
    ))
}
