//! The command line by which a container is run as a local process: the pod's
//! own words, with what has no place on one machine put right.
//!
//! Three things differ from the pod: a wildcard address becomes the pod's own,
//! the path of a mount becomes its folder, and `KITE_KUBECONFIG` names the
//! token where the pod has one. `KITE_LISTEN` is set where the pod leaves
//! Kite's own default, which is a wildcard too, and `HOME` is the pod's folder.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::api::core::v1::Container;
use kube::Client;

use super::downward::Facts;
use super::environment::Sources;
use super::volumes::Volumes;
use super::{image, token};

const KUBECONFIG: &str = "KITE_KUBECONFIG";
const HOME: &str = "HOME";
const LISTEN: &str = "KITE_LISTEN";
const LISTEN_FLAG: &str = "--listen";

/// Where Kite's processes listen when they are not told.
const DEFAULT_PORT: u16 = 8080;

/// How addresses that stand for all of a host are written before a port.
const WILDCARDS: [&str; 2] = ["0.0.0.0:", "[::]:"];

/// Where the server is, for the processes in pods.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) url: String,
    pub(super) ca: String,
}

/// The command line of a container. The error says what is missing.
pub(super) async fn command(
    client: &Client,
    server: &Server,
    facts: &Facts,
    container: &Container,
    volumes: &Volumes,
    folder: &Path,
) -> Result<Command, String> {
    let program = image::program(container)?;
    let mut variables = Sources::new(client, facts).variables(container).await?;
    let local = |text: &str| on_address(&volumes.localize(container, text), facts.ip);
    let words = image::arguments(container)?;
    let words: Vec<_> = words
        .iter()
        .map(|word| local(&variables.expand(word)))
        .collect();
    for (name, value) in variables.all().to_vec() {
        variables.set(&name, local(&value));
    }
    if variables.get(LISTEN).is_none() && !words.iter().any(|word| word.starts_with(LISTEN_FLAG)) {
        variables.set(LISTEN, format!("{}:{DEFAULT_PORT}", facts.ip));
    }
    // Or a process without a token would find the kubeconfig of whoever runs the tests.
    if variables.get(HOME).is_none() {
        variables.set(HOME, folder.to_string_lossy().into_owned());
    }
    if let Some(account) = volumes.account(container)
        && variables.get(KUBECONFIG).is_none()
    {
        let file = kubeconfig(server, &account, &folder.join(&container.name))?;
        variables.set(KUBECONFIG, file.to_string_lossy().into_owned());
    }
    let mut command = Command::new(program);
    command
        .args(words)
        .env_clear()
        .envs(variables.all().iter().cloned())
        .current_dir(folder);
    Ok(command)
}

fn kubeconfig(server: &Server, account: &Path, file: &Path) -> Result<PathBuf, String> {
    let file = file.with_extension("kubeconfig");
    let written = token::kubeconfig(&server.url, &server.ca, account, &file);
    written.map_err(|error| format!("{error:#}"))
}

/// `text` with `ip` in place of an address that stands for all of a host.
fn on_address(text: &str, ip: Ipv4Addr) -> String {
    for wildcard in WILDCARDS {
        if let Some((before, port)) = text.split_once(wildcard)
            && (before.is_empty() || before.ends_with('='))
        {
            return format!("{before}{ip}:{port}");
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_address_becomes_the_pods_own() {
        for (text, becomes) in [
            ("--listen=0.0.0.0:8080", "--listen=127.1.2.3:8080"),
            ("0.0.0.0:9000", "127.1.2.3:9000"),
            ("--listen=[::]:8080", "--listen=127.1.2.3:8080"),
            ("--listen=127.0.0.1:8080", "--listen=127.0.0.1:8080"),
            ("--from=10.0.0.0:80", "--from=10.0.0.0:80"),
        ] {
            assert_eq!(on_address(text, Ipv4Addr::new(127, 1, 2, 3)), becomes);
        }
    }
}
