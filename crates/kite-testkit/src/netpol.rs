//! The matcher of cyclonus as judge of who may talk to whom under NetworkPolicies,
//! through a small Go filter.
//!
//! It evaluates what it is given as the policies' specification says, ports and
//! addresses included. Whether a network plugin does the same is not its question.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde::{Deserialize, Serialize};

use crate::filter::Filter;
use crate::programs::Program;

/// One end of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct End {
    /// The address, which a rule on addresses may cover, be it a pod's or not.
    pub ip: String,
    /// A pod's namespace; an address outside of the cluster's pods has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels of that namespace.
    pub namespace_labels: BTreeMap<String, String>,
    /// Labels of the pod.
    pub pod_labels: BTreeMap<String, String>,
}

/// A connection that somebody tries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Connection {
    /// Who begins it.
    pub from: End,
    /// Who is to answer.
    pub to: End,
    /// `TCP` or `UDP`.
    pub protocol: &'static str,
    /// The port that is called.
    pub port: u16,
}

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Verdict {
    /// Whether the policies of the called pod's namespace let it in.
    pub ingress: bool,
    /// Whether the policies of the calling pod's namespace let it out.
    pub egress: bool,
}

impl Verdict {
    /// Whether the connection comes about.
    pub fn allowed(self) -> bool {
        self.ingress && self.egress
    }
}

/// A running filter.
pub struct Judge(Filter);

#[derive(Serialize)]
struct Question<'a> {
    policies: &'a [NetworkPolicy],
    traffic: &'a [Connection],
}

#[derive(Deserialize)]
struct Answers {
    #[serde(default)]
    answers: Vec<Verdict>,
}

impl Judge {
    /// Starts the filter, which is built first when it is nowhere.
    pub async fn start() -> Result<Self> {
        Ok(Self(Filter::start(Program::Cyclonus).await?))
    }

    /// A verdict for each connection, in order, under these policies and no others.
    pub fn verdicts(
        &self,
        policies: &[NetworkPolicy],
        traffic: &[Connection],
    ) -> Result<Vec<Verdict>> {
        let Answers { answers } = self.0.ask(&Question { policies, traffic })?;
        ensure!(
            answers.len() == traffic.len(),
            "the judge left questions open"
        );
        Ok(answers)
    }
}
