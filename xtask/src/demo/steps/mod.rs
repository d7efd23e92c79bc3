//! The steps of the story, in their order.

mod administrator;
mod farewell;
mod life;
mod repair;

use anyhow::{Context, Result};
use kite_api::KiteVirtualMachine;
use kite_api::labels::Controller;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};

use super::follow::follow;
use super::ledger::Title;
use super::machine;
use super::story::Story;

/// The user of docs/examples/user.yaml, and the user's namespace.
const USER: &str = "alice";
/// The user of docs/examples/second-user.yaml.
const SECOND_USER: &str = "bob";
/// The machine of docs/examples/machine.yaml.
const MACHINE: &str = "db";

/// Who keeps a machine.
const MACHINE_KEEPERS: [Controller; 4] = [
    Controller::Vm,
    Controller::VmStatus,
    Controller::Service,
    Controller::DataVolume,
];

/// The whole story.
pub(super) async fn all(story: &mut Story<'_>) -> Result<()> {
    let (user, vm) = (Controller::User, Controller::Vm);
    let keepers = &MACHINE_KEEPERS;
    let step = title("an administrator prepares the platform", None);
    story
        .step(step, &[vm, user], administrator::platform)
        .await?;
    let step = title("a user gets a safe namespace", Some(9));
    story.step(step, &[user], administrator::user).await?;
    let step = title("a machine, from one short object to Running", Some(23));
    story.step(step, keepers, life::create).await?;
    let step = title("somebody deletes its Service", Some(2));
    story
        .step(step, &[vm, Controller::Service], repair::service)
        .await?;
    let step = title("somebody halts it by hand", None);
    story.step(step, keepers, repair::power).await?;
    let step = title("its owner switches it off", Some(6));
    story.step(step, keepers, life::off).await?;
    let step = title("and on again", Some(9));
    story.step(step, keepers, life::on).await?;
    let step = title("what cannot work is refused", None);
    story.step(step, &[vm], life::refused).await?;
    let step = title("its owner deletes the machine", Some(12));
    story.step(step, keepers, farewell::machine).await?;
    let step = title("the user goes, and later the namespace", None);
    let concerned = [user, Controller::Namespace];
    story.step(step, &concerned, farewell::user).await
}

const fn title(text: &'static str, limit: Option<usize>) -> Title {
    Title { text, limit }
}

fn machines(client: &Client) -> Api<KiteVirtualMachine> {
    Api::namespaced(client.clone(), USER)
}

/// Changes the machine's specification as its owner would.
async fn patch(story: &Story<'_>, spec: &str) -> Result<()> {
    let patch = format!(r#"{{"spec":{spec}}}"#);
    let arguments = [
        "patch",
        "ktvm",
        MACHINE,
        "-n",
        USER,
        "--type=merge",
        "-p",
        &patch,
    ];
    story.kubectl.run(&arguments).await
}

/// Follows the machine until this holds for it.
async fn machine_until(
    story: &Story<'_>,
    mut done: impl FnMut(&KiteVirtualMachine) -> bool,
) -> Result<KiteVirtualMachine> {
    let api = machines(&story.client);
    let done = |machine: Option<&KiteVirtualMachine>| machine.is_some_and(&mut done);
    let limit = story.limit;
    let seen = follow(story.report, &api, MACHINE, limit, machine::describe, done).await?;
    seen.context("the machine is not there")
}

/// Objects of KubeVirt and CDI, as anybody reads them.
fn foreign(client: &Client, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(group, version, kind);
    Api::namespaced_with(client.clone(), USER, &ApiResource::from_gvk(&kind))
}

fn virtual_machines(client: &Client) -> Api<DynamicObject> {
    foreign(client, "kubevirt.io", "v1", "VirtualMachine")
}

fn instances(client: &Client) -> Api<DynamicObject> {
    foreign(client, "kubevirt.io", "v1", "VirtualMachineInstance")
}
