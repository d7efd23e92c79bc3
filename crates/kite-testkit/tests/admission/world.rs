//! A server with Kite's kinds, roles and policies, the people and programs that write to it, and a
//! user's namespace with what Kite would have made in it. No process of Kite's runs.

use std::collections::BTreeMap;

use kite_testkit::{ControlPlane, Options, install, kubeconfig, wait};
use kube::Client;
use kube::config::Kubeconfig;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::LONG;

/// Controllers, and accounts of Kubernetes and of KubeVirt, by their names in the tables.
const CONTROLLERS: [&str; 6] = kite_testkit::cluster::CONTROLLERS;
const ACCOUNTS: [(&str, &str, &str); 4] = [
    (
        "garbage collector",
        "kube-system",
        "generic-garbage-collector",
    ),
    (
        "namespace controller",
        "kube-system",
        "namespace-controller",
    ),
    ("virt-controller", "kubevirt", "kubevirt-controller"),
    ("thief", "vault", "thief"),
];
/// People, whose rights stand in [`RIGHTS`].
const PEOPLE: [&str; 5] = ["tenant", "editor", "viewer", "helpdesk", "administrator"];

pub(crate) struct World {
    pub(crate) plane: ControlPlane,
    configs: BTreeMap<&'static str, Kubeconfig>,
}

/// The world that all tests share.
pub(crate) async fn world() -> &'static World {
    static WORLD: OnceCell<World> = OnceCell::const_new();
    WORLD.get_or_init(World::start).await
}

impl World {
    async fn start() -> Self {
        // The garbage collector asks for new kinds only twice a minute, so it starts when they are there.
        let options = Options {
            controller_manager: false,
            ..Options::default()
        };
        let plane = ControlPlane::start(options).await.unwrap();
        install::kite_crds(&plane).await.unwrap();
        install::upstream_crds(&plane).await.unwrap();
        plane.start_controller_manager().await.unwrap();
        let mut configs = BTreeMap::new();
        let read = |path| Kubeconfig::read_from(path).unwrap();
        for name in CONTROLLERS {
            let identity = install::controller(&plane, name).await.unwrap();
            configs.insert(name, read(identity.kubeconfig));
        }
        for (called, namespace, account) in ACCOUNTS {
            let identity = plane.identity(namespace, account).await.unwrap();
            configs.insert(called, read(identity.kubeconfig));
        }
        let root = read(plane.admin_kubeconfig());
        for name in PEOPLE {
            let mut config = root.clone();
            let user = config.auth_infos[0].auth_info.as_mut().unwrap();
            user.impersonate = Some(name.to_owned());
            configs.insert(name, config);
        }
        configs.insert("the last resort", root);
        let admin = plane.admin_client().await.unwrap();
        for text in [RIGHTS, OBJECTS] {
            install::apply(&admin, text).await.unwrap();
        }
        let world = Self { plane, configs };
        world.rights_are_there().await;
        world
    }

    /// `edit` and `view` become what they are by a controller.
    async fn rights_are_there(&self) {
        let machines = "/apis/kite.dev/v1alpha1/namespaces/alice/kitevirtualmachines";
        for who in ["editor", "viewer"] {
            wait::eventually("roles of everybody", LONG, async || {
                self.ask(who, "GET", machines, &Value::Null).await.ok()
            })
            .await
            .unwrap();
        }
    }

    pub(crate) async fn client(&self, who: &str) -> Client {
        let config = self.configs.get(who);
        let config = config.unwrap_or_else(|| panic!("nobody is called {who}"));
        kubeconfig::client(config.clone()).await.unwrap()
    }

    /// One request; a refusal's words.
    pub(crate) async fn ask(
        &self,
        who: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<Value, String> {
        let kind = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let bytes = match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("Content-Type", kind)
            .body(bytes)
            .unwrap();
        let answer = self.client(who).await.request::<Value>(request).await;
        answer.map_err(|error| error.to_string())
    }

    /// The same, without anything being written.
    pub(crate) async fn would(
        &self,
        who: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<Value, String> {
        let path = format!("{path}?dryRun=All");
        self.ask(who, method, &path, body).await
    }
}

/// Metadata with labels and annotations of Kite's.
pub(crate) fn marked(name: &str) -> Value {
    json!({
        "name": name,
        "labels": {"kite.dev/managed-by": "kite-controller", "kite.dev/vm-name": "web"},
        "annotations": {"kite.dev/vm-uid": "m-1"},
    })
}

const RIGHTS: &str = r"
apiVersion: v1
kind: Namespace
metadata:
  name: alice
  labels: {kite.dev/managed-by: kite-controller, kite.dev/user: alice}
  annotations: {kite.dev/user-uid: u-1}
---
{apiVersion: v1, kind: Namespace, metadata: {name: vault}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: kite-tenant-alice, namespace: alice}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kite-tenant}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: editor}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: editor}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: viewer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: viewer}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: helpdesk}
rules:
- {apiGroups: [''], resources: [namespaces, namespaces/status, namespaces/finalize], verbs: [create, update, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: helpdesk}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: helpdesk}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: helpdesk}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: administrator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: administrator}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: kubevirt-controller}
rules:
- {apiGroups: ['', kubevirt.io, cdi.kubevirt.io], resources: ['*'], verbs: ['*']}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kubevirt-controller}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kubevirt-controller}
subjects: [{kind: ServiceAccount, name: kubevirt-controller, namespace: kubevirt}]
---
# What KubeVirt and CDI give to everybody who may edit a namespace.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kubevirt-edit}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kubevirt-controller}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: editor}]
";

const OBJECTS: &str = r"
apiVersion: kite.dev/v1alpha1
kind: KiteUser
metadata: {name: alice}
spec: {namespace: alice}
---
apiVersion: kite.dev/v1alpha1
kind: KitePlatform
metadata: {name: default}
spec: {}
---
apiVersion: kite.dev/v1alpha1
kind: KiteVirtualMachine
metadata: {name: web, namespace: alice}
spec: {cpu: 1, memory: 1Gi, disk: 2Gi, image: ubuntu-24.04}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: alice, labels: {kite.dev/managed-by: kite-controller, kite.dev/vm-uid: m-1}}
spec: {selector: {kite.dev/vm-uid: m-1}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: own, namespace: alice}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Secret
metadata: {name: web-ssh-key, namespace: alice, labels: {kite.dev/managed-by: kite-controller}}
---
{apiVersion: v1, kind: Secret, metadata: {name: password, namespace: alice}}
---
{apiVersion: v1, kind: Secret, metadata: {name: crown, namespace: vault}, stringData: {jewels: many}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: web, namespace: alice, labels: {kite.dev/vm-uid: m-1}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: old, namespace: alice, labels: {kite.dev/retained: 'true'}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: kite-isolation, namespace: alice, annotations: {kite.dev/user-uid: u-1}}
spec: {podSelector: {}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: theirs, namespace: alice}
spec: {podSelector: {}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: left, namespace: vault, annotations: {kite.dev/user-uid: u-0}}
spec: {podSelector: {}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: kite-quota, namespace: alice, annotations: {kite.dev/user-uid: u-1}}
spec: {hard: {pods: '10'}}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web, namespace: alice, annotations: {kite.dev/vm-uid: m-1}}
spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}}}}}
";
