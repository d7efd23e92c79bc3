//! What is done to all users at once, beside making, switching and deleting.

use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kite_api::KiteVirtualMachine;
use kite_kubevirt::VirtualMachine;
use kite_render::user::ISOLATION_POLICY;
use kite_testkit::tenant::{LONG, is_ready};
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;

use crate::ground::{Users, WEB};

/// Nobody does anything. That a minute of it costs nothing either is another test's.
pub(crate) async fn rest() {
    tokio::time::sleep(Duration::from_secs(3)).await;
}

/// Of each user a Service and a policy go, and a VirtualMachine is edited, until all is repaired.
pub(crate) async fn drift(users: &Users<'_>) {
    users
        .each(async |tenant| {
            let (services, policies) = (tenant.api::<Service>(), tenant.api::<NetworkPolicy>());
            let service = services.get(WEB).await.unwrap().uid();
            let policy = policies.get(ISOLATION_POLICY).await.unwrap().uid();
            let delete = DeleteParams::default();
            services.delete(WEB, &delete).await.unwrap();
            policies.delete(ISOLATION_POLICY, &delete).await.unwrap();
            let edit = json!({"spec": {"runStrategy": "Manual"}});
            tenant.edit::<VirtualMachine>(WEB, edit).await;
            tenant
                .until(WEB, LONG, |s: &Service| s.uid() != service)
                .await;
            tenant
                .until(ISOLATION_POLICY, LONG, |p: &NetworkPolicy| {
                    p.uid() != policy
                })
                .await;
            tenant
                .until(WEB, LONG, |vm: &VirtualMachine| {
                    vm.run_strategy() == Some("Always")
                })
                .await;
        })
        .await;
}

/// Each machine, which is off, gets a specification that its children do not show.
pub(crate) async fn spec(users: &Users<'_>) {
    users
        .each(async |tenant| {
            let edit = json!({"spec": {"onGuestShutdown": "StayOff"}});
            let edited = tenant.edit::<KiteVirtualMachine>(WEB, edit).await;
            let told = |m: &KiteVirtualMachine| {
                m.metadata.generation == edited.metadata.generation && is_ready(m)
            };
            tenant.until(WEB, LONG, told).await;
        })
        .await;
}
