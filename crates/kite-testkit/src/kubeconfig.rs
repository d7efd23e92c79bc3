//! Kubeconfig files as kube and kubectl read them, self-contained, so that one
//! may be copied away from its control plane's folder.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use k8s_openapi::ByteString;
use kube::config::{
    AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, NamedAuthInfo, NamedCluster,
    NamedContext,
};
use kube::{Client, Config};

use crate::pki::write_private;

/// The one name for cluster and context in these files.
const CLUSTER: &str = "kite";

/// A kubeconfig with one cluster and one user.
pub fn kubeconfig(url: &str, ca: &str, user: &str, credentials: AuthInfo) -> Result<Kubeconfig> {
    let cluster = Cluster {
        server: Some(url.to_owned()),
        certificate_authority_data: Some(base64(ca)?),
        ..Cluster::default()
    };
    let context = Context {
        cluster: CLUSTER.to_owned(),
        user: Some(user.to_owned()),
        ..Context::default()
    };
    Ok(Kubeconfig {
        clusters: vec![NamedCluster {
            name: CLUSTER.to_owned(),
            cluster: Some(cluster),
            ..NamedCluster::default()
        }],
        auth_infos: vec![NamedAuthInfo {
            name: user.to_owned(),
            auth_info: Some(credentials),
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext {
            name: CLUSTER.to_owned(),
            context: Some(context),
            ..NamedContext::default()
        }],
        current_context: Some(CLUSTER.to_owned()),
        kind: Some("Config".to_owned()),
        api_version: Some("v1".to_owned()),
        ..Kubeconfig::default()
    })
}

/// Credentials by client certificate.
pub fn by_certificate(certificate: &str, key: &str) -> Result<AuthInfo> {
    Ok(AuthInfo {
        client_certificate_data: Some(base64(certificate)?),
        client_key_data: Some(base64(key)?.into()),
        ..AuthInfo::default()
    })
}

/// Credentials by bearer token.
pub fn by_token(token: String) -> AuthInfo {
    AuthInfo {
        token: Some(token.into()),
        ..AuthInfo::default()
    }
}

/// Writes it so that only its owner may read it.
pub fn write(kubeconfig: &Kubeconfig, path: &Path) -> Result<PathBuf> {
    write_private(path, &serde_saphyr::to_string(kubeconfig)?)
}

/// A client of its own. A client's worker lives on the runtime that made it, so
/// a test makes its own instead of sharing one.
pub async fn client(kubeconfig: Kubeconfig) -> Result<Client> {
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .context("the test kit wrote a kubeconfig that kube cannot read")?;
    Ok(Client::try_from(config)?)
}

/// Base64 as Kubernetes writes it.
fn base64(text: &str) -> Result<String> {
    let bytes = ByteString(text.as_bytes().to_vec());
    Ok(serde_json::from_value(serde_json::to_value(bytes)?)?)
}
