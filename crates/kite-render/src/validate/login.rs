//! How a person gets into a machine: a user name, public keys, a password hash.
//!
//! These end up in cloud-init's input, where a stray line or option would run
//! commands as root; so each is checked down to its characters.

use std::fmt;

use ssh_key::public::KeyData;
use ssh_key::{Algorithm, PublicKey};

use super::{Wrong, is_hidden};

/// A Linux user name other than `root`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginUser(String);

impl LoginUser {
    /// Checks the text.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let first = |b: u8| b.is_ascii_lowercase() || b == b'_';
        let rest = |b: u8| first(b) || b.is_ascii_digit() || b == b'-';
        let fits =
            text.len() <= 32 && text.bytes().next().is_some_and(first) && text.bytes().all(rest);
        if !fits {
            return Err(Wrong::LoginUser);
        }
        if text == "root" {
            return Err(Wrong::Root);
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Longest line that is taken; an RSA key of 16,384 bits fits.
const KEY_LIMIT: usize = 4096;
/// Shorter RSA keys are refused by today's SSH servers anyway.
const RSA_BITS: usize = 2048;

/// One public key in OpenSSH's form, without options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshPublicKey(String);

impl SshPublicKey {
    /// Checks the line: an algorithm of the list, the key, perhaps a comment, and nothing else.
    pub fn parse(line: &str) -> Result<Self, Wrong> {
        if line.len() > KEY_LIMIT || line.chars().any(is_hidden) {
            return Err(Wrong::KeyLine);
        }
        let key = PublicKey::from_openssh(line).map_err(|_| Wrong::NoKey)?;
        match key.algorithm() {
            Algorithm::Ed25519
            | Algorithm::Ecdsa { .. }
            | Algorithm::SkEd25519
            | Algorithm::SkEcdsaSha2NistP256 => {}
            Algorithm::Rsa { .. } if rsa_bits(&key) >= RSA_BITS => {}
            Algorithm::Rsa { .. } => {
                return Err(Wrong::ShortKey);
            }
            _ => {
                return Err(Wrong::OldKey);
            }
        }
        key.to_openssh().map(Self).map_err(|_| Wrong::NoKey)
    }

    /// The line.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Two lines are the same key whatever their comments say.
    pub fn is_same_key(&self, other: &Self) -> bool {
        let key = |line: &Self| {
            line.0
                .splitn(3, ' ')
                .take(2)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        key(self) == key(other)
    }
}

fn rsa_bits(key: &PublicKey) -> usize {
    match key.key_data() {
        KeyData::Rsa(key) => key.n.as_positive_bytes().map_or(0, |n| n.len() * 8),
        _ => 0,
    }
}

/// A password as crypt(5) hashes it. It never shows in a log.
#[derive(Clone, PartialEq, Eq)]
pub struct CryptHash(String);

/// Hashes that take an attacker long enough: bcrypt, SHA-256, SHA-512, scrypt and both yescrypts.
const CRYPT_METHODS: [&str; 8] = ["2a", "2b", "2y", "5", "6", "7", "y", "gy"];
/// crypt(5) writes at most 384 bytes.
const CRYPT_LIMIT: usize = 384;

impl CryptHash {
    /// Checks what a Secret holds. A line end after it is forgiven, for `echo` leaves one.
    pub fn parse(bytes: &[u8]) -> Result<Self, Wrong> {
        let wrong = || Wrong::CryptHash;
        let text = std::str::from_utf8(bytes).map_err(|_| wrong())?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let mut parts = text.strip_prefix('$').ok_or_else(wrong)?.split('$');
        let method = parts.next().unwrap_or_default();
        let parts: Vec<&str> = parts.collect();
        // Method, salt and hash at least; the hash itself is what a mere salt string would lack.
        let whole = parts.len() >= 2 && parts.len() <= 4 && parts.iter().all(|p| !p.is_empty());
        let hash = parts.last().map_or(0, |p| p.len());
        let fits = |b: u8| b.is_ascii_alphanumeric() || b"./$,=".contains(&b);
        let good = whole && hash >= 43 && text.len() <= CRYPT_LIMIT && text.bytes().all(fits);
        if good && CRYPT_METHODS.contains(&method) {
            Ok(Self(text.to_owned()))
        } else {
            Err(wrong())
        }
    }

    /// The hash, for cloud-init.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for CryptHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CryptHash(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ED25519: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";
    const ECDSA: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBHwf2HMM5TRXvo2SQJjsNkiDD5KqiiNjrGVv3UUh+mMT5RHxiRtOnlqvjhQtBq0VpmpCV/PwUdhOig4vkbqAcEc=";

    // SE7
    #[test]
    fn a_key_with_or_without_a_comment_is_taken() {
        for line in [
            ED25519,
            ECDSA,
            &format!("{ED25519} alice"),
            &format!("{ED25519} alice at work"),
            &format!("{ED25519} zoë"),
        ] {
            assert_eq!(SshPublicKey::parse(line).unwrap().as_str(), line);
        }
        let commented = SshPublicKey::parse(&format!("{ED25519} alice")).unwrap();
        assert!(commented.is_same_key(&SshPublicKey::parse(ED25519).unwrap()));
        assert!(!commented.is_same_key(&SshPublicKey::parse(ECDSA).unwrap()));
    }

    // SE7, SE6
    #[test]
    fn options_further_lines_and_hidden_characters_are_refused() {
        let dss = "ssh-dss AAAAB3NzaC1kc3MAAACBANw9iSUO2UYhFMssjUgW46URqv8bBrDgHeF8HLBOWBvKuXF2Rx2J/XyhgX48SOLMuv0hcPaejlyLarabnF9F2V4dkpPpZSJ+7luHmxEjNxwhsdtg8UteXAWkeCzrQ6MvRJZHcDBjYh56KGvslbFnJsGLXlI4PQCyl6awNImwYGilAAAAFQCJGBU3hZf+QtP9Jh/nbfNlhFu7hwAAAIBHObOQioQVRm3HsVb7mOy3FVKhcLoLO3qoG9gTkd4KeuehtFAC3+rckiX7xSffnE/5YpjfGg/+x8hbhCr2dBJ5VRYlfVVqrrPwIhCWXPtLYPcnmEGmWAmEzG5S/ITlBwUoIYEJaWO0PgL1SzZVRJxrAA";
        for bad in [
            "",
            "root",
            "x\nruncmd: [reboot]",
            "a: b",
            &"A".repeat(1 << 20),
            dss,
            &format!("command=\"reboot\" {ED25519}"),
            &format!("from=\"10.0.0.1\" {ED25519}"),
            &format!("{ED25519}\n{ED25519}"),
            &format!("{ED25519} a\u{202e}b"),
            &format!("{ED25519} a\0"),
            &format!("{ED25519} a\u{85}b"),
            &format!(" {ED25519}"),
            "ssh-ed25519 AAAA",
            "ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti",
        ] {
            assert!(
                SshPublicKey::parse(bad).is_err(),
                "{:?}",
                bad.chars().take(60).collect::<String>()
            );
        }
    }

    // SE6
    #[test]
    fn only_an_ordinary_linux_user_may_log_in() {
        for good in ["kite", "_a", "a-1", &"a".repeat(32)] {
            assert!(LoginUser::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "root",
            "a: b",
            "x\nruncmd",
            "1a",
            "-a",
            "A",
            "a b",
            "ä",
            &"a".repeat(33),
        ] {
            assert!(LoginUser::parse(bad).is_err(), "{bad:?}");
        }
    }

    // C-18
    #[test]
    fn a_password_hash_is_checked_and_never_shown() {
        let hash = format!("$6$saltsalt${}", "a".repeat(86));
        for good in [
            &hash,
            &format!("{hash}\n"),
            &format!("$y$j9T$F5Jx5fExrKuPp53xLKQ..1${}", "b".repeat(43)),
            &format!("$6$rounds=5000$salt${}", "c".repeat(86)),
            &format!("$2b$12${}", "d".repeat(53)),
        ] {
            assert!(CryptHash::parse(good.as_bytes()).is_ok(), "{good}");
        }
        for bad in [
            "",
            "secret",
            "$6$salt$",
            "$6$salt",
            "$1$salt$1234567890123456789012345678901234567890123",
            &format!("{hash}\nroot"),
            &format!("{hash}: x"),
            &format!("$9$a${}", "b".repeat(60)),
            &"$6$".repeat(500),
        ] {
            let wrong = CryptHash::parse(bad.as_bytes()).unwrap_err().to_string();
            assert!(bad.is_empty() || !wrong.contains(bad), "{bad}");
        }
        assert!(CryptHash::parse(&[0xff, 0xfe]).is_err());
        let shown = format!("{:?}", CryptHash::parse(hash.as_bytes()).unwrap());
        assert!(!shown.contains("aaaa"), "{shown}");
    }
}
