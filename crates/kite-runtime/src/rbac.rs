//! The rights of a controller, as a table that sits beside its watches and writes.
//!
//! `cargo xtask generate` turns the tables into the role manifests, so that a
//! right is typed once. Nothing is granted or checked at run time here.

/// Where a right holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In every namespace and on cluster-scoped kinds.
    Cluster,
    /// In the namespace the controller itself runs in.
    OwnNamespace,
    /// In the namespace of the published images.
    ImageNamespace,
}

/// One line of a controller's rights.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Where it holds.
    pub scope: Scope,
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Resources, with sub-resources as `resource/sub`.
    pub resources: &'static [&'static str],
    /// Object names it is limited to; none means all.
    pub names: &'static [&'static str],
    /// Verbs.
    pub verbs: &'static [&'static str],
    /// What it is needed for; becomes a comment in the manifest.
    pub why: &'static str,
}

impl Rule {
    /// A right in the whole cluster.
    pub const fn cluster(
        group: &'static str,
        resources: &'static [&'static str],
        verbs: &'static [&'static str],
        why: &'static str,
    ) -> Self {
        Self {
            scope: Scope::Cluster,
            group,
            resources,
            names: &[],
            verbs,
            why,
        }
    }

    /// The same right, limited to objects of these names.
    #[must_use]
    pub const fn named(mut self, names: &'static [&'static str]) -> Self {
        self.names = names;
        self
    }

    /// The same right, limited to one kind of namespace.
    #[must_use]
    pub const fn within(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }
}

/// The rights that a controller needs beside its own while `--metrics-auth` is on, and only then.
pub const METRICS_AUTH: &[Rule] = &[
    Rule::cluster(
        "authentication.k8s.io",
        &["tokenreviews"],
        &["create"],
        "ask whose token it is that came with a question for metrics",
    ),
    Rule::cluster(
        "authorization.k8s.io",
        &["subjectaccessreviews"],
        &["create"],
        "ask whether that user may get /metrics",
    ),
];

/// The rights that every controller needs whatever it does: its Lease and events.
///
/// `lease` is the Lease's name. Creation cannot be limited by name, so it stands apart.
pub const fn common(lease: &'static [&'static str; 1]) -> [Rule; 3] {
    [
        Rule::cluster(
            "coordination.k8s.io",
            &["leases"],
            &["create"],
            "the first replica makes the Lease",
        )
        .within(Scope::OwnNamespace),
        Rule::cluster(
            "coordination.k8s.io",
            &["leases"],
            &["get", "update"],
            "take, keep and release the Lease",
        )
        .named(lease)
        .within(Scope::OwnNamespace),
        Rule::cluster(
            "events.k8s.io",
            &["events"],
            &["create", "patch"],
            "tell people what was done; events about cluster-scoped objects stand in default",
        ),
    ]
}
