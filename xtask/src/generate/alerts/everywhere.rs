//! The alerts that every controller has: whether its process runs, leads, sees and gets on.

use super::Alert;
use super::Severity::{Critical, Warning};

/// They stand in each chart with its own controller's name.
pub(super) const ALERTS: &[Alert] = &[
    Alert {
        name: "KiteDown",
        severity: Critical,
        of: &[],
        // The second half sees pods that never came to have an address to scrape.
        expr: "\
max by (cluster, namespace) (up{job=~\"(.+/)?$controller\"}) == 0
or
max by (cluster, namespace) (kube_deployment_status_replicas_available{deployment=\"$controller\"}) == 0
and
max by (cluster, namespace) (kube_deployment_spec_replicas{deployment=\"$controller\"}) > 0",
        hold: "5m",
        summary: "No replica of $controller answers in {{ $labels.namespace }}",
        description: "No replica of $controller can be scraped, or none is available although some are wanted. What it does is not done until one is back; nothing is lost meanwhile.",
    },
    Alert {
        name: "KiteNotScraped",
        severity: Warning,
        of: &[],
        expr: "\
max by (cluster, namespace) (kube_deployment_status_replicas_available{deployment=\"$controller\"}) > 0
unless on (cluster)
leader_election_master_status{controller=\"$controller\"}
unless on (cluster)
up{job=~\"(.+/)?$controller\"}",
        hold: "15m",
        summary: "$controller runs in {{ $labels.namespace }} and nobody scrapes it",
        description: "Prometheus has no target for $controller although it runs, so every other alert about it is blind.",
    },
    Alert {
        name: "KiteNoLeader",
        severity: Critical,
        of: &[],
        expr: "max by (cluster, namespace) (leader_election_master_status{controller=\"$controller\"}) == 0",
        // A lease is taken over within seconds; two scrapes of the slowest usual interval fit in.
        hold: "2m",
        summary: "Replicas of $controller run in {{ $labels.namespace }} and none of them leads",
        description: "Replicas of $controller answer, and for longer than a lease none of them has held it. What it does is not done.",
    },
    Alert {
        name: "KiteTwoLeaders",
        severity: Warning,
        of: &[],
        // In the whole cluster: two installations would work on the same objects.
        expr: "sum by (cluster) (leader_election_master_status{controller=\"$controller\"}) > 1",
        // A leader that has just gone is still seen for one scrape interval.
        hold: "5m",
        summary: "{{ $value }} replicas of $controller lead at the same time",
        description: "More than one replica of $controller works, in one installation or in two. Every write is safe all the same; they do each other's work.",
    },
    Alert {
        name: "KiteReconcileErrors",
        severity: Warning,
        of: &[],
        // A single broken object fails once a minute and nothing else happens in a quiet
        // cluster, so the share alone says little. What has an alert of its own (a kind
        // that is missing), or is an ordinary wait (not_ready), does not count.
        expr: "\
sum by (cluster, namespace) (controller:kite_reconcile_errors:rate5m{controller=\"$controller\", class!~\"dependency_missing|not_ready\"})
  / sum by (cluster, namespace) (controller:kite_reconciles:rate5m{controller=\"$controller\"}) > 0.5
and
sum by (cluster, namespace) (controller:kite_reconcile_errors:rate5m{controller=\"$controller\", class!~\"dependency_missing|not_ready\"}) > 0.1",
        hold: "15m",
        summary: "{{ $value | humanizePercentage }} of the passes of $controller fail",
        description: "More than half of the passes of $controller fail, over several objects. The log and the objects' conditions name the cause.",
    },
    Alert {
        name: "KiteReconcileSlow",
        severity: Warning,
        of: &[],
        // A pass is computed in memory and takes milliseconds; seconds are the API server's.
        expr: "controller:kite_reconcile_seconds:p90_5m{controller=\"$controller\"} > 5",
        hold: "15m",
        summary: "One pass of $controller in ten takes longer than {{ $value | humanizeDuration }}",
        description: "Passes of $controller take seconds where milliseconds are usual; most often the API server or a webhook is slow.",
    },
    Alert {
        name: "KiteSaturated",
        severity: Warning,
        of: &[],
        expr: "\
max by (cluster, namespace, pod) (avg_over_time(controller_runtime_active_workers{controller=\"$controller\"}[10m]))
  >= 0.9 * max by (cluster, namespace, pod) (controller_runtime_max_concurrent_reconciles{controller=\"$controller\"})",
        hold: "15m",
        summary: "All workers of {{ $labels.pod }} are busy",
        description: "All workers of $controller have been busy for a long time, so changes wait for one another.",
    },
    Alert {
        name: "KiteWatchStale",
        severity: Warning,
        of: &[],
        expr: "\
(
  max by (cluster, namespace, kind) (kite_watch_failing_seconds{controller=\"$controller\"}) > 120
  or
  max by (cluster, namespace, kind) (kite_watch_up{controller=\"$controller\"}) == 0
)
unless
min by (cluster, namespace, kind) (kite_watch_up{controller=\"$controller\"}) == -1",
        hold: "5m",
        summary: "$controller does not see {{ $labels.kind }}",
        description: "The watch of a kind fails or never became complete, so $controller works on an old view, or waits to begin.",
    },
    Alert {
        name: "KiteDependencyMissing",
        severity: Warning,
        of: &[],
        expr: "min by (cluster, namespace, kind) (kite_watch_up{controller=\"$controller\"}) == -1",
        hold: "15m",
        summary: "The cluster does not serve {{ $labels.kind }}, which $controller needs",
        description: "A kind that $controller watches is not served: KubeVirt, CDI or a definition of Kite's own is not installed, or no longer.",
    },
    Alert {
        name: "KiteFight",
        severity: Warning,
        of: &[],
        // At rest nothing is written. What people do grows with the number of objects:
        // a thousand machines may see one change a second for half an hour, ten may not.
        // The status also tells a clone's progress, a hundred times for each machine.
        expr: "\
sum by (cluster, namespace, kind) (controller:kite_writes:rate10m{controller=\"$controller\", result=~\"change|patch\"})
  > on (cluster, namespace) group_left () (0.05 + 0.001 * sum by (cluster, namespace) (controller:kite_objects:max{controller=\"$controller\"}))
or
sum by (cluster, namespace, kind) (controller:kite_writes:rate10m{controller=\"$controller\", result=\"status\"})
  > on (cluster, namespace) group_left () (0.3 + 0.02 * sum by (cluster, namespace) (controller:kite_objects:max{controller=\"$controller\"}))",
        hold: "30m",
        summary: "$controller writes {{ $labels.kind }} again and again, {{ printf \"%.1f\" $value }} times a second",
        description: "$controller writes the same kind for half an hour without a pause. Somebody else changes what it keeps, and each undoes the other's work.",
    },
    Alert {
        name: "KiteRequestsThrottled",
        severity: Warning,
        of: &[],
        expr: "\
sum by (cluster, namespace) (controller:kite_requests:rate5m{controller=\"$controller\", code=\"429\"})
  / sum by (cluster, namespace) (controller:kite_requests:rate5m{controller=\"$controller\"}) > 0.1",
        hold: "10m",
        summary: "The API server sends away {{ $value | humanizePercentage }} of the requests of $controller",
        description: "The API server answers $controller with 429, too many requests. It waits as it is told to, so changes come late.",
    },
    Alert {
        name: "KiteRequestsRefused",
        severity: Warning,
        of: &[],
        // By the class of error where there is one: a full quota is answered 403 as well.
        expr: "\
sum by (cluster, namespace) (controller:kite_reconcile_errors:rate5m{controller=\"$controller\", class=\"forbidden\"}) > 0
or
sum by (cluster, namespace) (controller:kite_requests:rate5m{controller=\"$controller\", code=\"401\"}) > 0.05",
        hold: "15m",
        summary: "The API server denies $controller a right that it needs",
        description: "The API server refuses $controller with 401 or 403: a role or binding is missing or older than the controller, or its token is not accepted.",
    },
    Alert {
        name: "KiteRestarting",
        severity: Warning,
        of: &[],
        expr: "max by (cluster, namespace, pod) (changes(process_start_time_seconds{controller=\"$controller\"}[30m])) > 2",
        hold: "0m",
        summary: "{{ $labels.pod }} has started {{ $value }} times anew within half an hour",
        description: "A container of $controller ends again and again. A leader that cannot renew its lease ends on purpose, and so does a process none of whose watches works.",
    },
    Alert {
        name: "KiteMemoryNearLimit",
        severity: Warning,
        of: &[],
        expr: "\
max by (cluster, namespace, pod) (process_resident_memory_bytes{controller=\"$controller\"})
  / max by (cluster, namespace, pod) (kube_pod_container_resource_limits{container=\"$controller\", resource=\"memory\"}) > 0.9",
        hold: "10m",
        summary: "{{ $labels.pod }} uses {{ $value | humanizePercentage }} of its memory limit",
        description: "$controller is about to be killed for its memory. Its need grows with the number of objects that it watches.",
    },
    Alert {
        name: "KiteVersionsMixed",
        severity: Warning,
        of: &[],
        expr: "count by (cluster) (count by (cluster, version) (kite_build_info{controller=\"$controller\"})) > 1",
        hold: "1h",
        summary: "{{ $value }} versions of $controller run side by side",
        description: "Replicas of $controller run in different versions for longer than a rollout takes, so the rollout hangs or there are two installations.",
    },
];
