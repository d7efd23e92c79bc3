//! The panels, row by row: what each asks, and what a reader is to see in it.
//!
//! `$kite` in a query stands for the chosen controllers, namespaces and pods.

use super::look::{Look, Row, panel};

/// All of them.
pub(super) const ROWS: &[Row] = &[
    Row {
        title: "At a glance",
        panels: &[
            panel(
                Look::Number,
                "Leaders",
                "none",
                "One for each controller; 0 means that nobody works, 2 that two do.",
                &[(
                    "sum by (controller) (leader_election_master_status{$kite})",
                    "{{controller}}",
                )],
            )
            .words(&[
                ("0", "none", "red"),
                ("1", "one", "green"),
                ("2", "two", "orange"),
            ]),
            panel(
                Look::Number,
                "Objects",
                "none",
                "What each controller looks after.",
                &[("max by (kind) (kite_objects{$kite})", "{{kind}}")],
            ),
            panel(
                Look::Number,
                "Firing alerts",
                "none",
                "Kite's own alerts that fire now.",
                &[(
                    "sum by (alertname, controller) (ALERTS{alertname=~\"Kite.+\", alertstate=\"firing\"})",
                    "{{alertname}} {{controller}}",
                )],
            ),
            panel(
                Look::Number,
                "Versions",
                "none",
                "Replicas by version; more than one version only while it is being changed.",
                &[("count by (version) (kite_build_info{$kite})", "{{version}}")],
            ),
        ],
    },
    Row {
        title: "Work",
        panels: &[
            panel(
                Look::Areas,
                "Passes by result",
                "ops",
                "Passes a second. A settled cluster has next to none.",
                &[(
                    "sum by (controller, result) (rate(controller_runtime_reconcile_total{$kite}[$__rate_interval]))",
                    "{{controller}} {{result}}",
                )],
            ),
            panel(
                Look::Lines,
                "Errors by class",
                "ops",
                "Failed passes a second. Conflicts and waits belong to an ordinary life.",
                &[(
                    "sum by (controller, class) (rate(controller_runtime_reconcile_errors_total{$kite}[$__rate_interval]))",
                    "{{controller}} {{class}}",
                )],
            ),
            panel(
                Look::Lines,
                "Time of a pass",
                "s",
                "Half of all passes, nine in ten, and ninety-nine in a hundred take at most this long.",
                &[
                    (
                        "histogram_quantile(0.5, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{$kite}[$__rate_interval])))",
                        "{{controller}} 50 %",
                    ),
                    (
                        "histogram_quantile(0.9, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{$kite}[$__rate_interval])))",
                        "{{controller}} 90 %",
                    ),
                    (
                        "histogram_quantile(0.99, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{$kite}[$__rate_interval])))",
                        "{{controller}} 99 %",
                    ),
                ],
            ),
            panel(
                Look::Heat,
                "Passes by their time",
                "s",
                "How many passes took how long.",
                &[(
                    "sum by (le) (increase(controller_runtime_reconcile_time_seconds_bucket{$kite}[$__rate_interval]))",
                    "{{le}}",
                )],
            ),
            panel(
                Look::Lines,
                "Busy workers",
                "none",
                "Passes that run, and how many may run at once. At the upper line changes wait for one another.",
                &[
                    (
                        "sum by (controller) (controller_runtime_active_workers{$kite})",
                        "{{controller}}",
                    ),
                    (
                        "max by (controller) (controller_runtime_max_concurrent_reconciles{$kite})",
                        "{{controller}} at most",
                    ),
                ],
            ),
        ],
    },
    Row {
        title: "API server",
        panels: &[
            panel(
                Look::Areas,
                "Requests by code",
                "reqps",
                "Every request, the Lease's included. 409 is ordinary, 429 and 403 are not.",
                &[(
                    "sum by (controller, code) (rate(rest_client_requests_total{$kite}[$__rate_interval]))",
                    "{{controller}} {{code}}",
                )],
            ),
            panel(
                Look::Areas,
                "Writes by result",
                "ops",
                "What was sent, by what came of it.",
                &[(
                    "sum by (controller, result) (rate(kite_writes_total{$kite, result!=\"suppressed\"}[$__rate_interval]))",
                    "{{controller}} {{result}}",
                )],
            ),
            panel(
                Look::Lines,
                "Writes that were not needed",
                "ops",
                "Looked at, found as it should be, and not sent.",
                &[(
                    "sum by (controller, kind) (rate(kite_writes_total{$kite, result=\"suppressed\"}[$__rate_interval]))",
                    "{{controller}} {{kind}}",
                )],
            ),
        ],
    },
    Row {
        title: "Watches",
        panels: &[
            panel(
                Look::Lines,
                "Watches",
                "none",
                "Up, not complete yet, or of a kind that the cluster does not serve.",
                &[(
                    "min by (controller, kind) (kite_watch_up{$kite})",
                    "{{controller}} {{kind}}",
                )],
            )
            .words(&[
                ("-1", "not served", "orange"),
                ("0", "not complete", "red"),
                ("1", "up", "green"),
            ]),
            panel(
                Look::Lines,
                "Failing since",
                "s",
                "For how long a watch has had nothing but errors.",
                &[(
                    "max by (controller, kind) (kite_watch_failing_seconds{$kite}) > 0",
                    "{{controller}} {{kind}}",
                )],
            ),
            panel(
                Look::Lines,
                "Errors of watches",
                "ops",
                "Each is tried again, at longer and longer intervals.",
                &[(
                    "sum by (controller, kind) (rate(kite_watch_errors_total{$kite}[$__rate_interval]))",
                    "{{controller}} {{kind}}",
                )],
            ),
        ],
    },
    Row {
        title: "Users and machines",
        panels: &[
            panel(
                Look::Areas,
                "Users by readiness",
                "none",
                "KiteUsers by the reason of their condition Ready.",
                &[(
                    "max by (status, reason) (kite_object_conditions{$kite, kind=\"KiteUser\", condition=\"Ready\"})",
                    "{{status}} {{reason}}",
                )],
            ),
            panel(
                Look::Areas,
                "Machines by readiness",
                "none",
                "KiteVirtualMachines by the reason of their condition Ready; one that is off on purpose is ready.",
                &[(
                    "max by (status, reason) (kite_object_conditions{$kite, kind=\"KiteVirtualMachine\", condition=\"Ready\"})",
                    "{{status}} {{reason}}",
                )],
            ),
            panel(
                Look::Areas,
                "Disks",
                "none",
                "Machines by the reason of their condition DiskReady.",
                &[(
                    "max by (status, reason) (kite_object_conditions{$kite, condition=\"DiskReady\"})",
                    "{{status}} {{reason}}",
                )],
            ),
            panel(
                Look::Areas,
                "What stands in the way",
                "none",
                "Machines whose children are not as declared, by reason.",
                &[(
                    "max by (condition, reason) (kite_object_conditions{$kite, condition=~\"Accepted|ResourcesApplied\", status=\"False\"})",
                    "{{condition}} {{reason}}",
                )],
            ),
            panel(
                Look::Areas,
                "Services",
                "none",
                "Machines by the reason of their condition ServiceReady.",
                &[(
                    "max by (status, reason) (kite_object_conditions{$kite, condition=\"ServiceReady\"})",
                    "{{status}} {{reason}}",
                )],
            ),
            panel(
                Look::Lines,
                "Deletions that stand still",
                "none",
                "Machines that cannot be deleted, by the kind that is in the way.",
                &[("max by (kind) (kite_deletions_blocked{$kite})", "{{kind}}")],
            ),
        ],
    },
    Row {
        title: "Namespaces",
        panels: &[
            panel(
                Look::Number,
                "Brake",
                "none",
                "Engaged while so many namespaces are due at once that none is deleted.",
                &[("max(kite_brake_engaged{$kite})", "brake")],
            )
            .words(&[("0", "off", "green"), ("1", "ENGAGED", "red")]),
            panel(
                Look::Lines,
                "Namespaces that nobody needs",
                "none",
                "Marked and waiting for the end of their grace period, or kept all the same.",
                &[
                    ("max(kite_orphaned_namespaces{$kite})", "orphaned"),
                    ("max(kite_namespaces_retained{$kite})", "kept"),
                    ("max(kite_namespaces_held{$kite})", "held by the brake"),
                    (
                        "max(kite_namespaces_unbound{$kite})",
                        "with Kite's label only",
                    ),
                ],
            ),
            panel(
                Look::Lines,
                "Deletions of namespaces",
                "none",
                "Carried out, and held back by reason, within the last hour.",
                &[
                    (
                        "sum(increase(kite_namespace_deletions_total{$kite}[1h]))",
                        "deleted",
                    ),
                    (
                        "sum by (reason) (increase(kite_namespace_deletions_suppressed_total{$kite}[1h]))",
                        "held back: {{reason}}",
                    ),
                    ("sum(kite_namespaces_deletion_blocked{$kite})", "do not go"),
                ],
            ),
        ],
    },
    Row {
        title: "Processes",
        panels: &[
            panel(
                Look::Lines,
                "Memory",
                "bytes",
                "Resident memory of each process.",
                &[("process_resident_memory_bytes{$kite}", "{{pod}}")],
            ),
            panel(
                Look::Lines,
                "Processor",
                "none",
                "Cores that each process uses.",
                &[(
                    "rate(process_cpu_seconds_total{$kite}[$__rate_interval])",
                    "{{pod}}",
                )],
            ),
            panel(
                Look::Lines,
                "Running since",
                "s",
                "Age of each process; a line that falls to zero is a restart.",
                &[("time() - process_start_time_seconds{$kite}", "{{pod}}")],
            ),
        ],
    },
];
