//! Puts manifests into a control plane: Kite's CRDs, generated roles and admission
//! policies, and the CRDs of KubeVirt and CDI.
//!
//! It applies files as they are, by server-side apply with strict field
//! validation. It renders no Helm template but one expression, the release's
//! namespace, which is `kite-system` here; lines that hold nothing but a
//! directive are left out, so that what remains is what a chart's defaults give.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, ValidationDirective,
};
use kube::core::{GroupVersionKind, TypeMeta};
use kube::discovery::{ApiCapabilities, Scope, pinned_kind};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::control_plane::ControlPlane;
use crate::identity::{Identity, create_if_absent, named};
use crate::wait::{eventually, wait_gone, wait_until};

/// Where Kite's controllers have their accounts and leases.
pub const SYSTEM_NAMESPACE: &str = "kite-system";

/// The one expression of a chart that [`SYSTEM_NAMESPACE`] takes the place of.
const RELEASE_NAMESPACE: &str = "{{ .Release.Namespace }}";

/// The field manager of all that is installed.
const MANAGER: &str = "kite-testkit";

/// How long a CRD may take until it is served, or gone.
const LIMIT: Duration = Duration::from_mins(1);

type Kinds = HashMap<GroupVersionKind, (ApiResource, ApiCapabilities)>;

/// Applies every document of `text`, in order; waits until its CRDs are served.
pub async fn apply(client: &Client, text: &str) -> Result<()> {
    apply_objects(client, documents(text)?).await
}

/// [`apply`] for files and for all YAML and JSON files of folders, by name.
pub async fn apply_paths(client: &Client, paths: &[PathBuf]) -> Result<()> {
    apply_objects(client, read_all(paths)?).await
}

/// Installs Kite's own CRDs, the roles that are handed out and the admission policies, and waits
/// until the server refuses what they refuse.
pub async fn kite_crds(control_plane: &ControlPlane) -> Result<()> {
    let client = control_plane.admin_client().await?;
    let objects = read_all(&[in_project("charts/kite-crds/templates")])?;
    let (policies, others): (Vec<_>, Vec<_>) = objects.into_iter().partition(|object| {
        let types = object.types.as_ref();
        types.is_some_and(|types| types.kind.starts_with("ValidatingAdmissionPolicy"))
    });
    // The server takes them in while it begins to serve the kinds.
    apply_objects(&client, policies).await?;
    apply_objects(&client, others).await?;
    eventually("admission policies that refuse", LIMIT, async || {
        is_refused(&client).await.then_some(())
    })
    .await?;
    Ok(())
}

/// Whether the policy that was installed last refuses already. kite-user, though its group here
/// may do anything, may bind nothing in a namespace that is no user's.
async fn is_refused(client: &Client) -> bool {
    let binding = json!({
        "metadata": {"name": "kite-testkit-probe"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    });
    let url = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings?dryRun=All";
    let account = format!("system:serviceaccount:{SYSTEM_NAMESPACE}:kite-user");
    let request = http::Request::post(url)
        .header("Content-Type", "application/json")
        .header("Impersonate-User", account)
        .header("Impersonate-Group", "system:masters")
        .body(binding.to_string().into_bytes());
    let Ok(request) = request else {
        return false;
    };
    let answer = client.request::<DynamicObject>(request).await;
    matches!(answer, Err(kube::Error::Api(status)) if status.code == 403 && status.message.contains("kite-user-writes"))
}

/// Installs the CRDs of KubeVirt and CDI.
pub async fn upstream_crds(control_plane: &ControlPlane) -> Result<()> {
    let client = control_plane.admin_client().await?;
    apply_paths(&client, &[upstream_folder()]).await
}

/// Removes the CRDs of KubeVirt and CDI, with all objects of these kinds.
pub async fn remove_upstream_crds(control_plane: &ControlPlane) -> Result<()> {
    let client = control_plane.admin_client().await?;
    let crds: Api<CustomResourceDefinition> = Api::all(client);
    let objects = read_all(&[upstream_folder()])?;
    try_join_all(objects.iter().map(async |object| {
        let name = object.name_any();
        match crds.delete(&name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
            Ok(_) => wait_gone(&crds, &name, LIMIT).await,
        }
    }))
    .await?;
    Ok(())
}

/// Gives the ServiceAccount of one of Kite's controllers its generated rights.
/// Namespaces that a role stands in are made when they are not there.
pub async fn rbac(control_plane: &ControlPlane, name: &str) -> Result<()> {
    let client = control_plane.admin_client().await?;
    let file = in_project("charts").join(name).join("files/rbac.yaml");
    let objects = read_all(&[file])?;
    let spaces: Api<Namespace> = Api::all(client.clone());
    for space in objects.iter().filter_map(ResourceExt::namespace) {
        create_if_absent(&spaces, named(&space)).await?;
    }
    apply_objects(&client, objects).await
}

/// The ServiceAccount of one of Kite's controllers, with its generated rights
/// and no others.
pub async fn controller(control_plane: &ControlPlane, name: &str) -> Result<Identity> {
    let identity = control_plane.identity(SYSTEM_NAMESPACE, name).await?;
    rbac(control_plane, name).await?;
    Ok(identity)
}

/// [`apply`] for objects.
pub async fn apply_objects(client: &Client, objects: Vec<DynamicObject>) -> Result<()> {
    let (crds, others): (Vec<_>, Vec<_>) = objects.into_iter().partition(|object| {
        let types = object.types.as_ref();
        types.is_some_and(|types| types.kind == "CustomResourceDefinition")
    });
    let mut kinds = Kinds::new();
    if let Some(crd) = crds.first() {
        learn(client, &mut kinds, gvk(crd)?).await?;
    }
    let known = &kinds;
    try_join_all(crds.iter().map(|crd| async move {
        apply_object(client, known, crd).await?;
        served(client, &crd.name_any()).await
    }))
    .await?;
    for object in &others {
        learn(client, &mut kinds, gvk(object)?).await?;
        apply_object(client, &kinds, object).await?;
    }
    Ok(())
}

async fn apply_object(client: &Client, kinds: &Kinds, object: &DynamicObject) -> Result<()> {
    let kind = gvk(object)?;
    let (resource, capabilities) = kinds.get(&kind).context("a kind that was looked up")?;
    let client = client.clone();
    let api: Api<DynamicObject> = match (&capabilities.scope, object.namespace()) {
        (Scope::Cluster, _) => Api::all_with(client, resource),
        (Scope::Namespaced, Some(space)) => Api::namespaced_with(client, &space, resource),
        (Scope::Namespaced, None) => Api::default_namespaced_with(client, resource),
    };
    let mut how = PatchParams::apply(MANAGER).force();
    how.field_validation = Some(ValidationDirective::Strict);
    let name = object.name_any();
    api.patch(&name, &how, &Patch::Apply(object))
        .await
        .with_context(|| format!("cannot apply {} {name}", kind.kind))?;
    Ok(())
}

async fn learn(client: &Client, kinds: &mut Kinds, kind: GroupVersionKind) -> Result<()> {
    if let Entry::Vacant(empty) = kinds.entry(kind) {
        let kind = empty.key();
        let found = pinned_kind(client, kind)
            .await
            .with_context(|| format!("the server has no {} {}", kind.api_version(), kind.kind))?;
        empty.insert(found);
    }
    Ok(())
}

/// Waits until the CRD is established, and until its kinds are indeed served:
/// the handlers follow a moment after the condition.
async fn served(client: &Client, name: &str) -> Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let crd = wait_until(&crds, name, LIMIT, established).await?;
    for version in crd.spec.versions.iter().filter(|version| version.served) {
        let names = &crd.spec.names;
        let kind = GroupVersionKind::gvk(&crd.spec.group, &version.name, &names.kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, &names.plural);
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let one = ListParams::default().limit(1);
        eventually(name, LIMIT, async || api.list(&one).await.ok()).await?;
    }
    Ok(())
}

fn established(crd: &CustomResourceDefinition) -> bool {
    let conditions = crd.status.iter().flat_map(|status| &status.conditions);
    let mut conditions = conditions.flatten();
    conditions.any(|condition| condition.type_ == "Established" && condition.status == "True")
}

fn gvk(object: &DynamicObject) -> Result<GroupVersionKind> {
    let types: &TypeMeta = object
        .types
        .as_ref()
        .context("a manifest without apiVersion and kind")?;
    Ok(GroupVersionKind::try_from(types)?)
}

fn read_all(paths: &[PathBuf]) -> Result<Vec<DynamicObject>> {
    let mut objects = Vec::new();
    for file in manifests(paths)? {
        let text = fs::read_to_string(&file)?;
        let read = documents(&text).with_context(|| file.display().to_string())?;
        objects.extend(read);
    }
    Ok(objects)
}

fn manifests(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_file() {
            files.push(path.clone());
            continue;
        }
        let entries = fs::read_dir(path).with_context(|| format!("no {}", path.display()))?;
        let mut inside: Vec<_> = entries
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_>>()?;
        inside.retain(|file| {
            let extension = file.extension().and_then(|extension| extension.to_str());
            matches!(extension, Some("yaml" | "yml" | "json"))
        });
        inside.sort();
        if inside.is_empty() {
            bail!("no manifest in {}", path.display());
        }
        files.append(&mut inside);
    }
    Ok(files)
}

fn documents(text: &str) -> Result<Vec<DynamicObject>> {
    let text = text.replace(RELEASE_NAMESPACE, SYSTEM_NAMESPACE);
    let plain: Vec<_> = text.lines().filter(|line| !is_directive(line)).collect();
    Ok(serde_saphyr::from_multiple(&plain.join("\n"))?)
}

/// A line of a chart that holds one Helm directive and nothing else.
fn is_directive(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("{{") && line.ends_with("}}")
}

fn in_project(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join(path)
}

fn upstream_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crds")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::helm::{Helm, chart};

    #[test]
    fn lines_of_a_chart_that_are_only_a_directive_are_left_out() {
        let text = "{{- if .Values.install }}\napiVersion: v1\nkind: Namespace\nmetadata:\n  \
                    name: a\n{{- end }}\n---\n---\napiVersion: v1\nkind: Namespace\nmetadata:\n  \
                    name: \"{{ b }}\"\n";
        let names: Vec<_> = documents(text)
            .unwrap()
            .iter()
            .map(ResourceExt::name_any)
            .collect();
        assert_eq!(names, ["a", "{{ b }}"]);
    }

    // What scenarios run under is what an administrator installs.
    #[tokio::test]
    async fn what_is_left_of_a_chart_is_what_helm_makes_of_its_defaults() {
        let folder = chart("kite-crds");
        let rendered = Helm::Four.rendered(folder.to_str().unwrap(), &[]).await;
        let rendered = rendered.unwrap().into_iter();
        let rendered = rendered.map(|object| serde_json::from_value(object).unwrap());
        let sorted = |objects: Vec<DynamicObject>| {
            let objects = objects.into_iter();
            let mut objects: Vec<_> = objects
                .map(|object| serde_json::to_string_pretty(&object).unwrap())
                .collect();
            objects.sort();
            objects
        };
        let left = read_all(&[folder.join("templates")]).unwrap();
        assert!(left.len() > 10, "{}", left.len());
        assert_eq!(sorted(left), sorted(rendered.collect()));
    }
}
