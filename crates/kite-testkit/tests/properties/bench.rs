//! One API server with Kite's kinds, those of KubeVirt and CDI and their webhooks.

use kite_render::compare::{Rules, differences};
use kite_testkit::install::{self, kite_crds, upstream_crds};
use kite_testkit::stand_ins::{self, Options};
use kite_testkit::{ControlPlane, shared};
use kube::api::{
    ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
    ValidationDirective,
};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::specs::NAMESPACES;

pub(crate) struct Bench {
    client: Client,
}

impl Bench {
    /// The server of this binary, and a client for the calling test.
    pub(crate) async fn shared() -> Self {
        static PREPARED: OnceCell<()> = OnceCell::const_new();
        let plane = shared().await;
        PREPARED.get_or_init(|| prepare(plane)).await;
        let client = plane.admin_client().await.unwrap();
        Self { client }
    }

    /// What the server would say to a whole object.
    pub(crate) async fn dry_run(&self, object: &Value) -> Result<Value, String> {
        let kind = object["kind"].as_str().unwrap();
        let (resource, namespaced) = resource(kind);
        let meta = &object["metadata"];
        let api: Api<DynamicObject> = match meta["namespace"].as_str() {
            Some(namespace) if namespaced => {
                Api::namespaced_with(self.client.clone(), namespace, &resource)
            }
            None if !namespaced => Api::all_with(self.client.clone(), &resource),
            other => panic!("{kind} in {other:?}"),
        };
        // The server gives UIDs; that of an object that is not there would be a conflict.
        let mut object = object.clone();
        object["metadata"].as_object_mut().unwrap().remove("uid");
        let answer = if matches!(kind, "KiteVirtualMachine" | "KiteUser") {
            created(&api, &object).await
        } else {
            applied(&api, &object).await
        };
        match answer {
            Ok(found) => Ok(serde_json::to_value(found).unwrap()),
            Err(kube::Error::Api(status)) if status.code < 500 => Err(status.message.clone()),
            Err(error) => panic!("{object}: {error}"),
        }
    }

    /// Panics when the server refuses it.
    pub(crate) async fn accepts(&self, object: &Value) -> Value {
        let answer = self.dry_run(object).await;
        answer.unwrap_or_else(|said| panic!("{object} is refused: {said}"))
    }

    /// The same for objects whose namespace was never made.
    pub(crate) async fn accepts_in_some_namespace(&self, children: Vec<Value>) {
        for mut child in children {
            if child["metadata"]["namespace"].is_string() {
                child["metadata"]["namespace"] = json!(NAMESPACES[0]);
            }
            self.accepts_unchanged(&child).await;
        }
    }

    /// Panics when the server refuses it, or stores another thing than was sent: the webhooks and
    /// the server's defaults stand beside what Kite sends, and never in its place.
    pub(crate) async fn accepts_unchanged(&self, object: &Value) {
        const RULES: Rules = Rules {
            amounts: &[
                "spec.hard",
                "spec.limits",
                "spec.storage.resources",
                "spec.template.spec.domain.memory",
            ],
            keyed: &[("spec.ports", &["port", "protocol"])],
        };
        let found = self.accepts(object).await;
        let changed = differences(object, &found, &RULES);
        assert!(changed.is_empty(), "{object}: {changed:?}");
        assert_eq!(object["data"], found["data"], "{object}");
    }
}

/// As people write: an apply of a wrong type would not even be an answer about the object.
async fn created(api: &Api<DynamicObject>, object: &Value) -> kube::Result<DynamicObject> {
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let object = serde_json::from_value(object.clone()).unwrap();
    api.create(&params, &object).await
}

/// As Kite writes.
async fn applied(api: &Api<DynamicObject>, object: &Value) -> kube::Result<DynamicObject> {
    let mut params = PatchParams::apply("properties").force().dry_run();
    params.field_validation = Some(ValidationDirective::Strict);
    let name = object["metadata"]["name"].as_str().unwrap();
    api.patch(name, &params, &Patch::Apply(object)).await
}

/// Installs the kinds, makes the namespaces, and serves the webhooks on a runtime that outlives
/// the test that asks first.
async fn prepare(plane: &'static ControlPlane) {
    kite_crds(plane).await.unwrap();
    upstream_crds(plane).await.unwrap();
    let client = plane.admin_client().await.unwrap();
    for name in NAMESPACES {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        install::apply(&client, &namespace.to_string())
            .await
            .unwrap();
    }
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async move {
            let client = plane.admin_client().await.unwrap();
            let running = stand_ins::start(client, Options::default()).await.unwrap();
            tell.send(()).ok();
            std::future::pending::<()>().await;
            drop(running);
        });
    });
    told.await.unwrap();
}

fn resource(kind: &str) -> (ApiResource, bool) {
    let (group, version, plural) = match kind {
        "KiteVirtualMachine" => ("kite.dev", "v1alpha1", "kitevirtualmachines"),
        "KiteUser" => ("kite.dev", "v1alpha1", "kiteusers"),
        "KiteHostClaim" => ("kite.dev", "v1alpha1", "kitehostclaims"),
        "VirtualMachine" => ("kubevirt.io", "v1", "virtualmachines"),
        "DataVolume" => ("cdi.kubevirt.io", "v1beta1", "datavolumes"),
        "Secret" => ("", "v1", "secrets"),
        "Service" => ("", "v1", "services"),
        "Namespace" => ("", "v1", "namespaces"),
        "ResourceQuota" => ("", "v1", "resourcequotas"),
        "LimitRange" => ("", "v1", "limitranges"),
        "Ingress" => ("networking.k8s.io", "v1", "ingresses"),
        "NetworkPolicy" => ("networking.k8s.io", "v1", "networkpolicies"),
        "RoleBinding" => ("rbac.authorization.k8s.io", "v1", "rolebindings"),
        other => panic!("{other} is not known here"),
    };
    let kind_ = GroupVersionKind::gvk(group, version, kind);
    let namespaced = !matches!(kind, "KiteUser" | "KiteHostClaim" | "Namespace");
    (
        ApiResource::from_gvk_with_plural(&kind_, plural),
        namespaced,
    )
}
