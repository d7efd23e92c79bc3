//! The host name: a claim that only one machine can hold, and the Ingress behind it.
//!
//! The claim is an object named like the host; its creation decides between two
//! machines, so the loser never has an Ingress, not for an instant (rule V-9).
//! It is released after the Ingress is gone. A claim whose machine is gone, as a
//! live look shows, is taken over.

use std::sync::Arc;

use k8s_openapi::api::networking::v1::Ingress;
use kite_api::{KiteHostClaim, KiteVirtualMachine};
use kite_render::machine::{host_claim, ingress};
use kite_render::validate::{DnsName, ValidMachine};
use kite_runtime::Key;
use kite_runtime::apply::{Place, WriteError};
use kube::Api;
use kube::api::PropagationPolicy;

use super::{Trouble, exactly};
use crate::observe::Observed;
use crate::reconcile::VmPass;

/// How the host name stands.
#[derive(Clone, Debug, Default)]
pub struct Domain {
    /// The host, once it is held and its Ingress is there.
    pub host: Option<String>,
    /// Why there is none, for `DomainReady`; nothing when none was asked for.
    pub why_not: Option<(&'static str, String)>,
    /// The host is another machine's.
    pub taken: bool,
    /// What went wrong on the way.
    pub trouble: Option<Trouble>,
}

/// The host name as the status has it, for a pass that does not touch it.
pub fn kept(seen: &Observed) -> Domain {
    Domain {
        host: seen.status().domain.clone(),
        ..Domain::default()
    }
}

/// Brings claim and Ingress to what the specification asks for.
pub async fn ensure(pass: &VmPass, seen: &Observed, machine: &ValidMachine) -> Domain {
    let wanted = machine
        .domain_prefix
        .as_ref()
        .map(|prefix| seen.platform.host(prefix));
    let result = match wanted {
        None => release_all(pass, seen, None).await.map(|()| Domain::default()),
        Some(None) => release_all(pass, seen, None).await.map(|()| Domain {
            why_not: Some(("BaseDomainMissing", "the platform has no base domain; an administrator sets baseDomain in the KitePlatform".to_owned())),
            ..Domain::default()
        }),
        Some(Some(Err(wrong))) => {
            release_all(pass, seen, None).await.map(|()| not_ready("InvalidHost", format!("the host name {wrong}")))
        }
        Some(Some(Ok(host))) => hold(pass, seen, &host).await,
    };
    result.unwrap_or_else(|trouble| Domain {
        host: None,
        why_not: Some((trouble.reason, trouble.message.clone())),
        taken: false,
        trouble: Some(trouble),
    })
}

fn not_ready(reason: &'static str, message: String) -> Domain {
    Domain {
        why_not: Some((reason, message)),
        ..Domain::default()
    }
}

async fn hold(pass: &VmPass, seen: &Observed, host: &DnsName) -> Result<Domain, Trouble> {
    if !claim(pass, seen, host).await? {
        // No Ingress may be left from an earlier host while this one is another's.
        release_all(pass, seen, None).await?;
        let message = format!(
            "the host {host} is already in use; choose another domainPrefix. It is taken as soon as it is free"
        );
        return Ok(Domain {
            taken: true,
            trouble: Some(Trouble {
                class: kite_runtime::Class::Invalid,
                ..Trouble::stalled("HostNameTaken", message.clone())
            }),
            ..not_ready("HostNameTaken", message)
        });
    }
    let wanted = ingress(&seen.owner, host, &seen.platform);
    exactly(pass, seen, &ingress_place(pass, seen), &wanted).await?;
    // Hosts of an earlier prefix or base domain go once no Ingress leads there.
    release_claims(pass, seen, Some(host)).await?;
    Ok(Domain {
        host: Some(host.to_string()),
        ..Domain::default()
    })
}

/// Whether the host is this machine's now.
async fn claim(pass: &VmPass, seen: &Observed, host: &DnsName) -> Result<bool, Trouble> {
    let place = claim_place(pass, host.as_str());
    let ours = |claim: &KiteHostClaim| claim.spec.uid == seen.owner.uid.as_str();
    let holder = match pass.world.hosts.get(&place.key) {
        Some(known) => known,
        None => match pass
            .writer
            .create(&place, &host_claim(&seen.owner, host))
            .await
        {
            Ok(_) => return Ok(true),
            Err(error) if error.refusal() == Some(kite_runtime::Refusal::Conflict) => {
                match pass.writer.live(&place).await? {
                    Some(live) => place.cache.remember(live),
                    // It went between the two calls; the watch wakes us for the next try.
                    None => return Err(error.into()),
                }
            }
            Err(error) => return Err(error.into()),
        },
    };
    if ours(&holder) {
        return Ok(true);
    }
    if holder_lives(pass, &holder).await? {
        return Ok(false);
    }
    pass.writer
        .delete(&place, &holder.metadata, PropagationPolicy::Background)
        .await?;
    // Whoever creates it first has it; that may be another machine.
    match pass
        .writer
        .create(&place, &host_claim(&seen.owner, host))
        .await
    {
        Ok(_) => Ok(true),
        Err(error) if error.refusal() == Some(kite_runtime::Refusal::Conflict) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The watch may not show a machine that was just made, so its absence is looked at live.
async fn holder_lives(pass: &VmPass, claim: &Arc<KiteHostClaim>) -> Result<bool, WriteError> {
    let key = Key::new(&claim.spec.namespace, &claim.spec.name);
    let is_holder =
        |m: &KiteVirtualMachine| m.metadata.uid.as_deref() == Some(claim.spec.uid.as_str());
    if pass.world.machines.get(&key).is_some_and(|m| is_holder(&m)) {
        return Ok(true);
    }
    let place = Place {
        api: Api::<KiteVirtualMachine>::namespaced(pass.writer.client().clone(), &key.namespace),
        cache: &pass.world.machines,
        key,
    };
    Ok(pass
        .writer
        .live(&place)
        .await?
        .is_some_and(|m| is_holder(&m)))
}

/// Takes the Ingress away and gives the claims back, in this order.
pub async fn release_all(
    pass: &VmPass,
    seen: &Observed,
    keep: Option<&DnsName>,
) -> Result<(), Trouble> {
    if let Some(ingress) = seen
        .ingress
        .as_ref()
        .filter(|i| seen.owns(&i.metadata) || seen.binds(&i.metadata))
    {
        let gone = pass
            .writer
            .delete(
                &ingress_place(pass, seen),
                &ingress.metadata,
                PropagationPolicy::Background,
            )
            .await?;
        if !gone {
            return Ok(());
        }
    }
    release_claims(pass, seen, keep).await
}

async fn release_claims(
    pass: &VmPass,
    seen: &Observed,
    keep: Option<&DnsName>,
) -> Result<(), Trouble> {
    for claim in &seen.hosts {
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        if keep.is_none_or(|k| k.as_str() != name) {
            let place = claim_place(pass, name);
            pass.writer
                .delete(&place, &claim.metadata, PropagationPolicy::Background)
                .await?;
        }
    }
    Ok(())
}

fn ingress_place<'a>(pass: &'a VmPass, seen: &Observed) -> Place<'a, Ingress> {
    Place {
        api: Api::namespaced(pass.writer.client().clone(), &seen.key.namespace),
        cache: &pass.world.ingresses,
        key: seen.key.clone(),
    }
}

fn claim_place<'a>(pass: &'a VmPass, host: &str) -> Place<'a, KiteHostClaim> {
    Place {
        api: Api::all(pass.writer.client().clone()),
        cache: &pass.world.hosts,
        key: Key::cluster(host),
    }
}
