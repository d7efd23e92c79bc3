//! A user and its namespace, as scenarios handle them.
//!
//! What is done with machines is [`Place`]'s.

use std::ops::Deref;

use k8s_openapi::api::core::v1::Namespace;
use kite_api::{Condition, KiteUser, condition};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;

pub use crate::place::{
    LONG, Place, REPAIR, condition_of, conditions, is_ready, is_true, message_of, phase,
};
use crate::{Cluster, install, wait};

/// A user and the machines in its namespace, as people see them.
pub struct Tenant<'a> {
    /// Where it lives.
    pub cluster: &'a Cluster,
    /// Of the KiteUser and of its namespace.
    pub name: String,
    /// Its namespace.
    pub place: Place,
}

impl Deref for Tenant<'_> {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.place
    }
}

impl<'a> Tenant<'a> {
    /// A tenant that is yet to be made.
    pub async fn new(cluster: &'a Cluster, name: &str) -> Self {
        Self {
            cluster,
            name: name.to_owned(),
            place: Place {
                client: cluster.client().await,
                namespace: name.to_owned(),
            },
        }
    }

    /// Makes the KiteUser and waits until its namespace is safe to use.
    pub async fn create(&self) -> KiteUser {
        let user = json!({
            "apiVersion": "kite.dev/v1alpha1", "kind": "KiteUser", "metadata": {"name": self.name},
            "spec": {
                "namespace": self.name,
                "quota": {"cpu": 8, "memory": "16Gi", "storage": "100Gi", "virtualMachines": 4},
                "subjects": [{"kind": "User", "name": format!("{}@example.org", self.name)}],
            },
        });
        install::apply(&self.client, &user.to_string())
            .await
            .unwrap();
        self.user_until(|u| is_true(user_conditions(u), condition::READY))
            .await
    }

    /// Waits for a state of the KiteUser.
    pub async fn user_until(&self, is: impl Fn(&KiteUser) -> bool + Send + Sync) -> KiteUser {
        let users: Api<KiteUser> = Api::all(self.client.clone());
        wait::wait_until(&users, &self.name, LONG, is)
            .await
            .unwrap()
    }

    /// Deletes the KiteUser and waits until it is gone.
    pub async fn delete_user(&self) {
        let users: Api<KiteUser> = Api::all(self.client.clone());
        users
            .delete(&self.name, &DeleteParams::default())
            .await
            .unwrap();
        wait::wait_gone(&users, &self.name, LONG).await.unwrap();
    }

    /// Waits until the namespace is gone.
    pub async fn namespace_gone(&self) {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        wait::wait_gone(&namespaces, &self.name, LONG)
            .await
            .unwrap();
    }

    /// A namespace without a KiteUser, prepared by hand, for scenarios without kite-user.
    pub async fn prepare_by_hand(&self) {
        self.place.make().await;
        self.place.prepare().await;
    }
}

/// The conditions of a user.
pub fn user_conditions(user: &KiteUser) -> &[Condition] {
    user.status
        .as_ref()
        .map(|s| s.conditions.as_slice())
        .unwrap_or_default()
}
