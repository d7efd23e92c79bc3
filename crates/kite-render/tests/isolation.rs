//! What the API server would refuse in the rendered policies, and what it would
//! read as everybody (rule U-5, SE20).
//!
//! Who reaches whom is asked of the policies that live on a server, by a judge
//! that is none of Kite's, in the test kit's `isolation` tests.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{platform, user};
use kite_render::user::network_policies;
use kite_render::validate::{Cidr, ValidPlatform};

// U-5
#[test]
fn without_sources_no_rule_is_empty() {
    let mut user = user();
    user.allow_from.clear();
    let policies = network_policies(&user, &ValidPlatform::default());
    for rule in policies
        .iter()
        .flat_map(|p| p.spec.iter())
        .flat_map(|s| s.ingress.iter().flatten())
    {
        assert!(
            rule.from.as_ref().is_some_and(|f| !f.is_empty()),
            "an empty `from` lets everybody in"
        );
    }
}

// SE20
#[test]
fn every_except_lies_inside_its_range_and_is_not_all_of_it() {
    let policies = network_policies(&user(), &platform());
    let mut seen = 0;
    let specs = policies.iter().flat_map(|p| p.spec.iter());
    for peer in specs
        .flat_map(|s| s.egress.iter().flatten())
        .flat_map(|r| r.to.iter().flatten())
    {
        let Some(block) = &peer.ip_block else {
            continue;
        };
        let cidr = Cidr::parse(&block.cidr).unwrap();
        for except in block.except.iter().flatten() {
            let except = Cidr::parse(except).unwrap();
            assert!(
                cidr.contains(&except) && cidr != except,
                "{except} in {cidr}"
            );
            seen += 1;
        }
    }
    assert!(seen > 8, "{seen}");
}
