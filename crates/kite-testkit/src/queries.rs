//! The metrics that Kite's rules and panels ask for.
//!
//! Every selector of Kite's rules and panels has braces, so a name is what stands
//! before them. No grammar is known here; promtool judges that.

use std::collections::BTreeSet;

/// What rules and dashboard use and Kite does not make: Prometheus itself does, or
/// kube-state-metrics, without which the alerts that name it are silent.
pub const OF_OTHERS: [&str; 5] = [
    "ALERTS",
    "kube_deployment_spec_replicas",
    "kube_deployment_status_replicas_available",
    "kube_pod_container_resource_limits",
    "up",
];

/// The names of all metrics that are selected in `expr`.
pub fn metrics_in(expr: &str) -> BTreeSet<String> {
    let mut pieces: Vec<&str> = expr.split('{').collect();
    // What stands behind the last brace selects nothing.
    pieces.pop();
    pieces.into_iter().map(last_name).collect()
}

fn last_name(before: &str) -> String {
    let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let start = before.rfind(|c| !of_name(c)).map_or(0, |at| at + 1);
    before[start..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_where_braces_follow() {
        let found = metrics_in("sum by (a) (rate(b_total{c=\"d\"}[5m])) / e:f:g{h=~\"i|j\"} > 0.1");
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["b_total", "e:f:g"]);
    }
}
