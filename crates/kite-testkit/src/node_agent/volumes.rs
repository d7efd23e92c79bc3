//! The volumes of a pod as folders, and the paths of a container's mounts put
//! into its arguments: a local process has no file system of its own.
//!
//! emptyDir, configMap, secret, downwardAPI and projected volumes are known; the
//! last bring the token, which is renewed in place. A key that is taken out of a
//! ConfigMap or a Secret leaves its file behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::{
    Container, DownwardAPIVolumeFile, KeyToPath, Volume, VolumeProjection,
};
use kube::Client;
use tokio::time::sleep;

use super::downward::Facts;
use super::environment::{Entries, Sources, missing, require};
use super::token::Token;

/// Where the token of a pod's ServiceAccount is mounted, by admission or by hand.
const ACCOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The ConfigMap that the server itself puts beside each such token.
const AUTHORITY: &str = "kube-root-ca.crt";

/// How soon a ConfigMap or a Secret that was changed is seen in its files. A
/// kubelet takes up to two minutes, for which no test waits.
const REFRESH: Duration = Duration::from_secs(5);

/// The volumes of one pod.
#[derive(Debug, Default)]
pub(super) struct Volumes {
    folder: PathBuf,
    tokens: Vec<Token>,
}

impl Volumes {
    /// Makes all of them in `folder`. The error says what is missing.
    pub(super) async fn make(
        client: &Client,
        facts: &Facts,
        folder: &Path,
    ) -> Result<Self, String> {
        let mut volumes = Self {
            folder: folder.to_owned(),
            tokens: Vec::new(),
        };
        volumes.fill(client, facts).await?;
        for volume in all(facts) {
            let tokens = parts(volume).filter_map(|part| part.service_account_token.as_ref());
            for token in tokens {
                let folder = folder.join(&volume.name);
                let token = Token::make(client, facts, token, &folder).await?;
                volumes.tokens.push(token);
            }
        }
        Ok(volumes)
    }

    /// Renews the tokens before they end and writes again what has changed, for ever.
    pub(super) async fn keep_fresh(&self, client: &Client, facts: &Facts) {
        let tokens = self.tokens.iter();
        let tokens = join_all(tokens.map(|token| token.keep_fresh(client, facts)));
        let fill = async {
            while all(facts).any(may_change) {
                sleep(REFRESH).await;
                if let Err(error) = self.fill(client, facts).await {
                    tracing::warn!(error, "volumes are as they were");
                }
            }
            std::future::pending::<()>().await;
        };
        futures::join!(tokens, fill);
    }

    /// The folder in which a container finds its ServiceAccount's token.
    pub(super) fn account(&self, container: &Container) -> Option<PathBuf> {
        let mounts = container.volume_mounts.iter().flatten();
        let mut mounts =
            mounts.filter(|mount| mount.mount_path.trim_end_matches('/') == ACCOUNT_PATH);
        let folder = self.folder.join(&mounts.next()?.name);
        folder.join("token").is_file().then_some(folder)
    }

    /// Puts the folders of a container's mounts in place of the paths at which
    /// it would find them.
    pub(super) fn localize(&self, container: &Container, text: &str) -> String {
        let mut mounts: Vec<_> = container.volume_mounts.iter().flatten().collect();
        // A mount inside another one is the more exact.
        mounts.sort_by_key(|mount| std::cmp::Reverse(mount.mount_path.len()));
        for mount in mounts {
            let mut folder = self.folder.join(&mount.name);
            if let Some(path) = &mount.sub_path {
                folder.push(path);
            }
            let path = mount.mount_path.trim_end_matches('/');
            if let Some(localized) = replace_path(text, path, &folder.to_string_lossy()) {
                return localized;
            }
        }
        text.to_owned()
    }

    /// Writes all but the tokens.
    async fn fill(&self, client: &Client, facts: &Facts) -> Result<(), String> {
        let sources = Sources::new(client, facts);
        for volume in all(facts) {
            let folder = self.folder.join(&volume.name);
            fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
            if let Some(map) = &volume.config_map {
                let found = sources.config_map(&map.name).await?;
                let found = require(found, map.optional, || missing(false, &map.name))?;
                write_all(&folder, found, map.items.as_deref())?;
            } else if let Some(secret) = &volume.secret {
                let name = secret.secret_name.as_deref().unwrap_or_default();
                let found = sources.secret(name).await?;
                let found = require(found, secret.optional, || missing(true, name))?;
                write_all(&folder, found, secret.items.as_deref())?;
            } else if let Some(downward) = &volume.downward_api {
                write_fields(&folder, facts, downward.items.as_deref())?;
            } else if volume.projected.is_none() && volume.empty_dir.is_none() {
                let name = &volume.name;
                return Err(format!(
                    "the stand-in for a kubelet has no such volume as {name:?}"
                ));
            }
            for part in parts(volume) {
                project(facts, &sources, &folder, part).await?;
            }
        }
        Ok(())
    }
}

/// The volumes that a pod asks for.
fn all(facts: &Facts) -> impl Iterator<Item = &Volume> {
    let spec = facts.pod.spec.iter();
    spec.flat_map(|spec| spec.volumes.iter().flatten())
}

/// The parts of a projected volume; none of another one.
fn parts(volume: &Volume) -> impl Iterator<Item = &VolumeProjection> {
    let projected = volume.projected.iter();
    projected.flat_map(|projected| projected.sources.iter().flatten())
}

/// Whether somebody may change what is in a volume.
fn may_change(volume: &Volume) -> bool {
    let part = |part: &VolumeProjection| {
        // The certificate of the server's authority stays.
        let map = part.config_map.as_ref();
        part.secret.is_some() || map.is_some_and(|map| map.name != AUTHORITY)
    };
    volume.config_map.is_some() || volume.secret.is_some() || parts(volume).any(part)
}

/// Writes one part of a projected volume, unless it is a token.
async fn project(
    facts: &Facts,
    sources: &Sources<'_>,
    folder: &Path,
    part: &VolumeProjection,
) -> Result<(), String> {
    if let Some(map) = &part.config_map {
        let found = sources.config_map(&map.name).await?;
        let found = require(found, map.optional, || missing(false, &map.name))?;
        write_all(folder, found, map.items.as_deref())?;
    }
    if let Some(secret) = &part.secret {
        let found = sources.secret(&secret.name).await?;
        let found = require(found, secret.optional, || missing(true, &secret.name))?;
        write_all(folder, found, secret.items.as_deref())?;
    }
    if let Some(downward) = &part.downward_api {
        write_fields(folder, facts, downward.items.as_deref())?;
    }
    Ok(())
}

/// Writes the entries that are asked for, which without a list is all.
fn write_all(
    folder: &Path,
    found: Option<Entries>,
    items: Option<&[KeyToPath]>,
) -> Result<(), String> {
    let found = found.unwrap_or_default();
    match items {
        None => found
            .iter()
            .try_for_each(|(key, bytes)| write(folder, key, bytes)),
        Some(items) => items.iter().try_for_each(|item| {
            let mut entries = found.iter();
            let entry = entries.find(|(key, _)| *key == item.key);
            let (_, bytes) = entry.ok_or_else(|| format!("there is no key {:?}", item.key))?;
            write(folder, &item.path, bytes)
        }),
    }
}

fn write_fields(
    folder: &Path,
    facts: &Facts,
    items: Option<&[DownwardAPIVolumeFile]>,
) -> Result<(), String> {
    for item in items.unwrap_or_default() {
        let text = match (&item.field_ref, &item.resource_field_ref) {
            (Some(field), _) => facts.field(field)?,
            (None, Some(resource)) => facts.resource(None, resource)?,
            (None, None) => continue,
        };
        write(folder, &item.path, text.as_bytes())?;
    }
    Ok(())
}

/// Writes a file that is whole whenever somebody reads it.
pub(super) fn write(folder: &Path, path: &str, bytes: &[u8]) -> Result<(), String> {
    let file = folder.join(path);
    let result = (|| {
        fs::create_dir_all(file.parent().unwrap_or(folder))?;
        let unfinished = folder.join("..unfinished");
        fs::write(&unfinished, bytes)?;
        fs::rename(&unfinished, &file)
    })();
    result.map_err(|error: std::io::Error| format!("cannot write {}: {error}", file.display()))
}

/// `text` with `folder` in place of each `path` that is a whole path or the
/// beginning of one; nothing when there is none.
fn replace_path(text: &str, path: &str, folder: &str) -> Option<String> {
    let part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
    let mut result = String::new();
    let mut written = 0;
    for (at, _) in text.match_indices(path).filter(|_| !path.is_empty()) {
        let end = at + path.len();
        let before = text[..at].chars().next_back();
        let after = text[end..].chars().next();
        let whole = !before.is_some_and(|c| part_of_name(c) || c == '/')
            && !after.is_some_and(part_of_name);
        if whole && at >= written {
            result.push_str(&text[written..at]);
            result.push_str(folder);
            written = end;
        }
    }
    (written > 0).then(|| result + &text[written..])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_whole_paths_are_replaced() {
        let replaced = |text| replace_path(text, "/etc/tls", "/x/tls");
        for (text, becomes) in [
            ("--cert=/etc/tls/tls.crt", Some("--cert=/x/tls/tls.crt")),
            ("/etc/tls", Some("/x/tls")),
            ("/etc/tls,/etc/tls/a", Some("/x/tls,/x/tls/a")),
            ("/etc/tls2/tls.crt", None),
            ("/my/etc/tls", None),
            ("--level=info", None),
        ] {
            assert_eq!(replaced(text).as_deref(), becomes, "{text}");
        }
    }

    #[test]
    fn a_mount_inside_another_is_the_more_exact_and_may_be_a_part_of_its_volume() {
        let volumes = Volumes {
            folder: PathBuf::from("/v"),
            tokens: Vec::new(),
        };
        let container = serde_json::from_value(json!({"name": "a", "volumeMounts": [
            {"name": "outer", "mountPath": "/etc"},
            {"name": "inner", "mountPath": "/etc/tls", "subPath": "now"},
        ]}))
        .unwrap();
        let localize = |text| volumes.localize(&container, text);
        assert_eq!(localize("/etc/tls/tls.crt"), "/v/inner/now/tls.crt");
        assert_eq!(localize("/etc/passwd"), "/v/outer/passwd");
    }
}
