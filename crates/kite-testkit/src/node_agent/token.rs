//! The token of a pod's ServiceAccount, bound to the pod, and the kubeconfig by
//! which the process in it finds the server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ServiceAccount, ServiceAccountTokenProjection};
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::config::AuthInfo;
use kube::{Api, Client, ResourceExt};

use super::downward::Facts;
use super::volumes::write;
use crate::kubeconfig;

/// How long a token holds that says nothing of it; the server's own default.
const LIFE: i64 = 3600;

/// A token is renewed after this part of its life.
const RENEW_AT: f64 = 0.8;

/// How long after a failed renewal the next is tried.
const RETRY: Duration = Duration::from_secs(5);

/// A token in a file.
#[derive(Debug)]
pub(super) struct Token {
    wanted: ServiceAccountTokenProjection,
    folder: PathBuf,
    first_renewal: Duration,
}

impl Token {
    /// Asks for a token and writes it.
    pub(super) async fn make(
        client: &Client,
        facts: &Facts,
        wanted: &ServiceAccountTokenProjection,
        folder: &Path,
    ) -> Result<Self, String> {
        let mut token = Self {
            wanted: wanted.clone(),
            folder: folder.to_owned(),
            first_renewal: RETRY,
        };
        token.first_renewal = token.renew(client, facts).await?;
        Ok(token)
    }

    /// Renews it whenever it has lived most of its life.
    pub(super) async fn keep_fresh(&self, client: &Client, facts: &Facts) {
        let mut pause = self.first_renewal;
        loop {
            tokio::time::sleep(pause).await;
            pause = self.renew(client, facts).await.unwrap_or_else(|error| {
                tracing::warn!(pod = facts.pod.name_any(), error, "no new token");
                RETRY
            });
        }
    }

    /// Writes a new token and says when the next is due.
    async fn renew(&self, client: &Client, facts: &Facts) -> Result<Duration, String> {
        let pod = &facts.pod;
        let spec = pod.spec.as_ref();
        let account = spec.and_then(|spec| spec.service_account_name.as_deref());
        let request = TokenRequest {
            spec: TokenRequestSpec {
                audiences: self.wanted.audience.clone().into_iter().collect(),
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".into()),
                    kind: Some("Pod".into()),
                    name: pod.metadata.name.clone(),
                    uid: pod.metadata.uid.clone(),
                }),
                expiration_seconds: Some(self.wanted.expiration_seconds.unwrap_or(LIFE)),
            },
            ..TokenRequest::default()
        };
        let namespace = pod.namespace().unwrap_or_default();
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &namespace);
        let account = account.unwrap_or("default");
        let params = PostParams::default();
        let answer = accounts
            .create_token_request(account, &params, &request)
            .await;
        let status = answer.map_err(|error| error.to_string())?.status;
        let status = status.ok_or("the server sent no token")?;
        write(&self.folder, &self.wanted.path, status.token.as_bytes())?;
        let left = status
            .expiration_timestamp
            .0
            .duration_since(Timestamp::now());
        let left = Duration::try_from(left).unwrap_or_default();
        Ok(left.mul_f64(RENEW_AT).max(RETRY))
    }
}

/// Writes a kubeconfig that reads the token in `account` again and again.
pub(super) fn kubeconfig(
    url: &str,
    ca: &str,
    account: &Path,
    file: &Path,
) -> anyhow::Result<PathBuf> {
    let credentials = AuthInfo {
        token_file: Some(account.join("token").to_string_lossy().into_owned()),
        ..AuthInfo::default()
    };
    let config = kubeconfig::kubeconfig(url, ca, "pod", credentials)?;
    kubeconfig::write(&config, file)
}
