//! A key pair for a machine whose user brought none (rule V-12).
//!
//! Making a pair takes randomness, so only `apply` of kite-vm calls
//! [`KeyPair::generate`]; rendering the Secret from a pair is pure. The Secret is
//! created and never overwritten: when it is already there, [`public_key_of`]
//! reads the key that the guest knows.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use ssh_key::private::KeypairData;
use ssh_key::rand_core::OsRng;
use ssh_key::{Algorithm, LineEnding, PrivateKey};

use super::ssh_key_name;
use crate::meta::{Component, owned_by_machine};
use crate::validate::{MachineOwner, SshPublicKey};

/// The key of the Secret that its type prescribes.
pub const PRIVATE_KEY: &str = "ssh-privatekey";
/// The key of the Secret with the public half, for people.
pub const PUBLIC_KEY: &str = "ssh-publickey";

/// Why there is no key pair. It holds nothing of the key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// No pair could be made or written.
    #[error("failed to make an SSH key pair: {0}")]
    Make(#[from] ssh_key::Error),
    /// The Secret has no private key in it.
    #[error(
        "the Secret has no {PRIVATE_KEY}; delete it if the machine never booted, and a new pair is made"
    )]
    Missing,
    /// The private key in the Secret cannot be read.
    #[error(
        "the {PRIVATE_KEY} in the Secret is no Ed25519 key in OpenSSH's form without a passphrase"
    )]
    Unreadable,
}

/// An Ed25519 key pair. It never shows in a log.
pub struct KeyPair(PrivateKey);

impl std::fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyPair(…)")
    }
}

impl KeyPair {
    /// Makes a pair from the system's randomness. The comment tells whose machine it opens.
    pub fn generate(owner: &MachineOwner) -> Result<Self, KeyError> {
        let mut key = PrivateKey::random(&mut OsRng, Algorithm::Ed25519)?;
        key.set_comment(format!("{}.{}", owner.name, owner.namespace));
        Ok(Self(key))
    }

    /// The public half.
    pub fn public(&self) -> Result<SshPublicKey, KeyError> {
        let line = self.0.public_key().to_openssh()?;
        SshPublicKey::parse(&line).map_err(|_| KeyError::Unreadable)
    }
}

/// The Secret with a pair.
pub fn ssh_key(owner: &MachineOwner, pair: &KeyPair) -> Result<Secret, KeyError> {
    let private = pair.0.to_openssh(LineEnding::LF)?;
    let public = pair.public()?;
    let data = [
        (
            PRIVATE_KEY.to_owned(),
            ByteString(private.as_bytes().to_vec()),
        ),
        (
            PUBLIC_KEY.to_owned(),
            ByteString(format!("{}\n", public.as_str()).into_bytes()),
        ),
    ];
    Ok(Secret {
        metadata: owned_by_machine(owner, ssh_key_name(owner), Component::Login),
        data: Some(data.into()),
        type_: Some("kubernetes.io/ssh-auth".to_owned()),
        ..Secret::default()
    })
}

/// The public key of a stored pair, worked out from the private one: that is what opens the machine.
pub fn public_key_of(secret: &Secret) -> Result<SshPublicKey, KeyError> {
    let private = secret
        .data
        .as_ref()
        .and_then(|d| d.get(PRIVATE_KEY))
        .ok_or(KeyError::Missing)?;
    let key = PrivateKey::from_openssh(&private.0).map_err(|_| KeyError::Unreadable)?;
    match key.key_data() {
        KeypairData::Ed25519(_) => KeyPair(key).public(),
        _ => Err(KeyError::Unreadable),
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::{DnsLabel, MachineName, Uid};

    use super::*;

    fn owner() -> MachineOwner {
        MachineOwner {
            namespace: DnsLabel::parse("alice").unwrap(),
            name: MachineName::parse("web").unwrap(),
            uid: Uid::parse("u-1").unwrap(),
        }
    }

    // V-12: the key that is stored is the key that is injected.
    #[test]
    fn the_public_key_of_a_stored_pair_is_that_of_the_pair() {
        let pair = KeyPair::generate(&owner()).unwrap();
        let secret = ssh_key(&owner(), &pair).unwrap();
        assert_eq!(public_key_of(&secret).unwrap(), pair.public().unwrap());
        assert!(pair.public().unwrap().as_str().ends_with(" web.alice"));
        assert_eq!(secret.type_.as_deref(), Some("kubernetes.io/ssh-auth"));
        assert!(secret.string_data.is_none());
        let text = String::from_utf8(secret.data.unwrap()[PRIVATE_KEY].0.clone()).unwrap();
        assert!(text.starts_with("-----BEGIN OPENSSH PRIVATE KEY-----\n"));
    }

    #[test]
    fn two_pairs_differ_and_none_shows() {
        let (one, two) = (
            KeyPair::generate(&owner()).unwrap(),
            KeyPair::generate(&owner()).unwrap(),
        );
        assert_ne!(one.public().unwrap(), two.public().unwrap());
        assert_eq!(format!("{one:?}"), "KeyPair(…)");
    }

    // C-18
    #[test]
    fn a_secret_that_was_tampered_with_is_an_error_that_tells_no_key() {
        let with = |data: &[u8]| Secret {
            data: Some([(PRIVATE_KEY.to_owned(), ByteString(data.to_vec()))].into()),
            ..Secret::default()
        };
        assert!(matches!(
            public_key_of(&Secret::default()),
            Err(KeyError::Missing)
        ));
        let error = public_key_of(&with(b"not a key")).unwrap_err();
        assert!(matches!(error, KeyError::Unreadable) && !error.to_string().contains("not a key"));
    }
}
