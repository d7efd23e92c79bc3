//! ServiceAccounts with real tokens, so that the rights of a process are those
//! that RBAC gives it and no more.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::PostParams;
use kube::config::Kubeconfig;
use kube::core::ObjectMeta;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::control_plane::ControlPlane;
use crate::kubeconfig;

/// No test and no demo lasts longer; a cluster left up over a holiday may.
const TOKEN_LIFE_SECONDS: i64 = 30 * 24 * 3600;

/// A ServiceAccount and a token for it.
#[derive(Clone, Debug)]
pub struct Identity {
    /// As the API server and its audit log call it.
    pub username: String,
    /// A kubeconfig file with the token.
    pub kubeconfig: PathBuf,
    config: Kubeconfig,
}

impl Identity {
    /// A new client with these rights.
    pub async fn client(&self) -> Result<Client> {
        kubeconfig::client(self.config.clone()).await
    }

    /// The kubeconfig file.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

impl ControlPlane {
    /// A ServiceAccount with a fresh token; it and its namespace are made when
    /// they are not there. It has no rights but those of every authenticated user.
    pub async fn identity(&self, namespace: &str, account: &str) -> Result<Identity> {
        let client = self.admin_client().await?;
        let spaces: Api<Namespace> = Api::all(client.clone());
        create_if_absent(&spaces, named(namespace)).await?;
        let accounts: Api<ServiceAccount> = Api::namespaced(client, namespace);
        create_if_absent(&accounts, named(account)).await?;
        let request = TokenRequest {
            spec: TokenRequestSpec {
                expiration_seconds: Some(TOKEN_LIFE_SECONDS),
                ..TokenRequestSpec::default()
            },
            ..TokenRequest::default()
        };
        let answer = accounts
            .create_token_request(account, &PostParams::default(), &request)
            .await?;
        let token = answer.status.context("the server sent no token")?.token;
        let credentials = kubeconfig::by_token(token);
        let config = kubeconfig::kubeconfig(&self.url(), self.ca(), account, credentials)?;
        let folder = self.folder().join("identities");
        std::fs::create_dir_all(&folder)?;
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let file = folder.join(format!("{namespace}.{account}.{number}.kubeconfig"));
        Ok(Identity {
            username: format!("system:serviceaccount:{namespace}:{account}"),
            kubeconfig: kubeconfig::write(&config, &file)?,
            config,
        })
    }
}

pub(crate) fn named<K: Resource + Default>(name: &str) -> K {
    let mut object = K::default();
    *object.meta_mut() = ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    };
    object
}

pub(crate) async fn create_if_absent<K>(api: &Api<K>, object: K) -> Result<()>
where
    K: Resource + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    match api.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}
