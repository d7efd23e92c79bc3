//! What several alerts need, computed once.
//!
//! `cluster` stands in every grouping for those who judge several clusters in one
//! place; where no series has that label it changes nothing.

use super::Recording;

const fn of_all(name: &'static str, expr: &'static str) -> Recording {
    Recording {
        name,
        of: &[],
        expr,
    }
}

/// All of them. The names say level, metric and operation, as is customary.
pub(super) const ALL: &[Recording] = &[
    of_all(
        "controller:kite_reconciles:rate5m",
        "sum by (cluster, namespace, controller, result) (rate(controller_runtime_reconcile_total{controller=\"$controller\"}[5m]))",
    ),
    of_all(
        "controller:kite_reconcile_errors:rate5m",
        "sum by (cluster, namespace, controller, class) (rate(controller_runtime_reconcile_errors_total{controller=\"$controller\"}[5m]))",
    ),
    of_all(
        "controller:kite_reconcile_seconds:p90_5m",
        "histogram_quantile(0.9, sum by (cluster, namespace, controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{controller=\"$controller\"}[5m])))",
    ),
    of_all(
        "controller:kite_requests:rate5m",
        "sum by (cluster, namespace, controller, code) (rate(rest_client_requests_total{controller=\"$controller\"}[5m]))",
    ),
    of_all(
        "controller:kite_writes:rate10m",
        "sum by (cluster, namespace, controller, kind, result) (rate(kite_writes_total{controller=\"$controller\"}[10m]))",
    ),
    // Every replica counts the same objects, so replicas are not added up.
    of_all(
        "controller:kite_objects:max",
        "max by (cluster, namespace, controller, kind) (kite_objects{controller=\"$controller\"})",
    ),
    of_all(
        "controller:kite_object_conditions:max",
        "max by (cluster, namespace, controller, kind, condition, status, reason) (kite_object_conditions{controller=\"$controller\"})",
    ),
];
