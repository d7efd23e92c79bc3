//! What the six tell a monitoring system, and whom they tell it.
//!
//! Alerts and dashboards are not looked at here; what they are made of is.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use http::Request;
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::command_line::run;
use kite_testkit::control_plane::free_port;
use kite_testkit::counted::Counted;
use kite_testkit::kite_process::Metrics;
use kite_testkit::kubeconfig::{by_token, kubeconfig};
use kite_testkit::pki::Authority;
use kite_testkit::programs::{Program, find};
use kite_testkit::tenant::{LONG, Tenant};
use kite_testkit::wait::eventually;
use kite_testkit::{Cluster, ClusterOptions, Identity, KiteProcess, http_get, install};
use kube::client::Body;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;
use tokio::process::Command;

/// The reference page, which is made from the code.
const PAGE: &str = include_str!("../../../docs/reference/metrics.md");

/// What shows only when something is wrong, or when something is deleted.
const RARE: [&str; 3] = [
    "kite_deletions_blocked",
    "kite_namespaces_deletion_blocked",
    "kite_namespace_deletions_suppressed_total",
];

/// One cluster tells one story; what stops the API server comes last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_six_tell_is_complete_bounded_and_can_be_kept_from_strangers() {
    let cluster = Cluster::start(ClusterOptions::default()).await.unwrap();
    let first = Tenant::new(&cluster, "harriet").await;
    first.create().await;
    first.machine("zebra", json!({})).await;
    first.ready("zebra").await;
    every_metric_has_its_line_and_its_form(&cluster).await;
    more_objects_make_no_more_series(&cluster, &first).await;
    scraping_asks_the_server_nothing(&cluster, &first).await;
    whoever_may_read_reads_and_nobody_else(&cluster).await;
}

async fn scrape(cluster: &Cluster, name: &str) -> String {
    let address = cluster.with(name, KiteProcess::address);
    let (status, text) = http_get::get(address, "/metrics").await.unwrap();
    assert_eq!(status, 200, "{text}");
    text
}

/// The names of the metrics in a text, as its comments give them.
fn names(text: &str) -> BTreeSet<String> {
    let types = text.lines().filter_map(|l| l.strip_prefix("# TYPE "));
    types
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect()
}

/// Prometheus' own judge finds nothing to say, and the reference page leaves nothing out.
async fn every_metric_has_its_line_and_its_form(cluster: &Cluster) {
    let listed: BTreeSet<String> = PAGE
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .map(str::to_owned)
        .collect();
    let mut told = BTreeSet::new();
    for name in CONTROLLERS {
        let text = scrape(cluster, name).await;
        let mut promtool = Command::new(find(Program::Promtool).unwrap());
        promtool.args(["check", "metrics"]);
        let said = run(promtool, &text).await.unwrap();
        assert!(said.success, "{name}: {}{}", said.stdout, said.stderr);
        assert_eq!(said.stderr, "", "{name}");
        told.extend(names(&text));
    }
    let unlisted: Vec<_> = told.difference(&listed).collect();
    assert!(unlisted.is_empty(), "not on the page: {unlisted:?}");
    let absent = listed.difference(&told).map(String::as_str);
    let absent: Vec<_> = absent.filter(|name| !RARE.contains(name)).collect();
    assert!(absent.is_empty(), "told by nobody: {absent:?}");
}

/// The series of each controller, and how many objects it says there are.
async fn series(cluster: &Cluster) -> Vec<(BTreeSet<String>, f64)> {
    let mut all = Vec::new();
    for name in CONTROLLERS {
        let metrics = Metrics::parse(&scrape(cluster, name).await).unwrap();
        let objects = metrics.sum("kite_objects", &[]);
        all.push((metrics.series.into_keys().collect(), objects));
    }
    all
}

/// The conditions that the machines' four controllers count as they are when all is well.
fn conditions(series: &[(BTreeSet<String>, f64)]) -> BTreeSet<&String> {
    let all = series.iter().flat_map(|(series, _)| series);
    all.filter(|s| s.starts_with("kite_object_conditions"))
        .collect()
}

async fn more_objects_make_no_more_series(cluster: &Cluster, first: &Tenant<'_>) {
    let few = settled(cluster, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]).await;
    first.machine("zebra-2", json!({})).await;
    let more: Vec<_> = ["isidora", "jocasta"].to_vec();
    for name in &more {
        let tenant = Tenant::new(cluster, name).await;
        tenant.create().await;
        for machine in ["okapi", "quagga"] {
            tenant.machine(machine, json!({})).await;
        }
    }
    for name in &more {
        let tenant = Tenant::new(cluster, name).await;
        for machine in ["okapi", "quagga"] {
            tenant.ready(machine).await;
        }
    }
    first.ready("zebra-2").await;
    let many = settled(cluster, [3.0, 3.0, 6.0, 6.0, 6.0, 6.0]).await;
    assert_eq!(conditions(&few), conditions(&many));
    for (name, ((few, _), (many, _))) in CONTROLLERS.iter().zip(few.iter().zip(&many)) {
        // A kind of answer that the first machine did not meet may show, such as a conflict.
        let new: Vec<_> = many.difference(few).collect();
        let is_answer = |series: &str| {
            ["rest_client_requests_total", "kite_writes_total"]
                .iter()
                .any(|name| series.starts_with(name))
        };
        assert!(new.iter().all(|s| is_answer(s)), "{name}: {new:#?}");
        println!("{name}: {} series, then {}", few.len(), many.len());
        for tenant in ["harriet", "isidora", "jocasta", "zebra", "okapi", "quagga"] {
            let named: Vec<_> = many.iter().filter(|s| s.contains(tenant)).collect();
            assert!(named.is_empty(), "{name} tells a name: {named:?}");
        }
    }
}

/// The series when each controller counts so many objects, and no machine is on its way any more.
async fn settled(cluster: &Cluster, objects: [f64; 6]) -> Vec<(BTreeSet<String>, f64)> {
    eventually("metrics that show all machines settled", LONG, async || {
        let all = series(cluster).await;
        let counts = all
            .iter()
            .zip(objects)
            .all(|((_, n), m)| (n - m).abs() < 0.5);
        let ways = ["condition=\"Reconciling\"", "status=\"Unknown\""];
        let on_the_way = conditions(&all)
            .into_iter()
            .any(|s| ways.iter().any(|way| s.contains(way)) || is_filling(s));
        (counts && !on_the_way).then_some(all)
    })
    .await
    .unwrap()
}

/// A disk that is not full yet, or a Service behind which nothing answers yet.
fn is_filling(series: &str) -> bool {
    let parts = [
        "condition=\"DiskReady\"",
        "condition=\"ServiceReady\"",
        "condition=\"Ready\"",
    ];
    series.contains("status=\"False\"") && parts.iter().any(|part| series.contains(part))
}

async fn scraping_asks_the_server_nothing(cluster: &Cluster, first: &Tenant<'_>) {
    let audit = cluster.control_plane.audit().unwrap();
    let start = audit.settled_mark(&first.client).await.unwrap();
    for _ in 0..20 {
        for name in CONTROLLERS {
            scrape(cluster, name).await;
        }
    }
    let asked = Counted::since(cluster, &first.client, start).await;
    asked.at_most("twenty scrapes of each", 0);
}

/// A replica that shows its metrics to who may read them, and the port that it does that on.
struct Secured<'a> {
    cluster: &'a Cluster,
    address: SocketAddr,
    certificate: PathBuf,
    key: PathBuf,
    /// The authority whose certificate it shows, PEM.
    authority: String,
}

impl<'a> Secured<'a> {
    async fn start(cluster: &'a Cluster) -> Self {
        let folder = cluster.control_plane.folder();
        let mut secured = Self {
            cluster,
            address: SocketAddr::from(([127, 0, 0, 1], free_port().unwrap())),
            certificate: folder.join("metrics.crt"),
            key: folder.join("metrics.key"),
            authority: String::new(),
        };
        secured.renew();
        let path = |path: &Path| path.display().to_string();
        let args = [
            format!("--metrics-listen={}", secured.address),
            format!("--tls-cert-file={}", path(&secured.certificate)),
            format!("--tls-key-file={}", path(&secured.key)),
            "--metrics-auth=true".to_owned(),
        ];
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        cluster.run("kite-service", "secured", &args).await.unwrap();
        secured
    }

    /// Puts a certificate of a new authority in the place of the one before.
    fn renew(&mut self) {
        let authority = Authority::new("metrics").unwrap();
        let (certificate, key) = authority.server(&["127.0.0.1"]).unwrap();
        std::fs::write(&self.certificate, certificate).unwrap();
        std::fs::write(&self.key, key).unwrap();
        self.authority = authority.certificate;
    }

    /// The answer to somebody with these credentials who trusts an authority; none without trust.
    async fn read(&self, authority: &str, who: AuthInfo) -> Option<(u16, String)> {
        let url = format!("https://{}", self.address);
        let file = kubeconfig(&url, authority, "reader", who).unwrap();
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(file, &options)
            .await
            .unwrap();
        // It would ask again for minutes when the answer is 503.
        config.default_retry = false;
        let client = Client::try_from(config).unwrap();
        let request = Request::get("/metrics").body(Body::empty()).unwrap();
        let answer = client.send(request).await.ok()?;
        let status = answer.status().as_u16();
        let bytes = answer.into_body().collect_bytes().await.unwrap();
        Some((status, String::from_utf8(bytes.to_vec()).unwrap()))
    }

    async fn answer(&self, token: &str) -> (u16, String) {
        let who = by_token(token.to_owned());
        self.read(&self.authority, who).await.expect("an answer")
    }
}

/// The token of a new ServiceAccount.
async fn reader(cluster: &Cluster, name: &str) -> String {
    let identity: Identity = cluster
        .control_plane
        .identity("monitoring", name)
        .await
        .unwrap();
    let config = Kubeconfig::read_from(identity.kubeconfig()).unwrap();
    let info = config.auth_infos[0].auth_info.clone().unwrap();
    let info = serde_json::to_value(&info).unwrap();
    info["token"].as_str().unwrap().to_owned()
}

/// What a chart adds to a controller's rights, and what an administrator gives to Prometheus.
const RIGHTS: &str = r"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: kite-service-metrics-auth}
rules:
- {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}
- {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kite-service-metrics-auth}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kite-service-metrics-auth}
subjects: [{kind: ServiceAccount, name: kite-service, namespace: kite-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: metrics-reader}
rules:
- {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: metrics-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: metrics-reader}
subjects: [{kind: ServiceAccount, name: prometheus, namespace: monitoring}]
";

async fn whoever_may_read_reads_and_nobody_else(cluster: &Cluster) {
    let [prometheus, passer_by, late] = [
        reader(cluster, "prometheus").await,
        reader(cluster, "passer-by").await,
        reader(cluster, "late").await,
    ];
    let mut secured = Secured::start(cluster).await;
    probes_stay_plain_and_open(cluster).await;
    nothing_is_shown_while_the_controller_may_not_ask(&secured, &prometheus).await;
    let admin = cluster.client().await;
    install::apply(&admin, RIGHTS).await.unwrap();
    let shown = || async { (secured.answer(&prometheus).await.0 == 200).then_some(()) };
    eventually("the rights to be known", LONG, shown)
        .await
        .unwrap();

    let (status, words) = secured
        .read(&secured.authority, AuthInfo::default())
        .await
        .unwrap();
    assert_eq!(status, 401, "{words}");
    assert!(words.starts_with("no token: send"), "{words}");
    let (status, words) = secured.answer("nonsense").await;
    assert_eq!(status, 401, "{words}");
    let (status, words) = secured.answer(&passer_by).await;
    assert_eq!(status, 403, "{words}");
    assert!(
        words.starts_with("system:serviceaccount:monitoring:passer-by may not get /metrics"),
        "{words}"
    );
    one_question_a_minute(&secured, &prometheus).await;
    a_new_certificate_is_shown(&mut secured, &prometheus).await;

    // When the server cannot be asked, whoever is not known yet is shown nothing.
    cluster.control_plane.stop_apiserver().await;
    let (status, words) = secured.answer(&late).await;
    assert_eq!(status, 503, "{words}");
    assert!(
        words.starts_with("the API server cannot be asked"),
        "{words}"
    );
    assert_eq!(words.lines().count(), 1, "{words}");
}

/// Probes need neither token nor certificate, and the metrics are not beside them any more.
async fn probes_stay_plain_and_open(cluster: &Cluster) {
    let address = cluster.with("secured", KiteProcess::address);
    for (path, status) in [("/livez", 200), ("/readyz", 200), ("/metrics", 404)] {
        let (answer, _) = http_get::get(address, path).await.unwrap();
        assert_eq!(answer, status, "{path}");
    }
}

/// C-20: without the rights of a chart that was told about it, a controller may ask about nobody.
async fn nothing_is_shown_while_the_controller_may_not_ask(secured: &Secured<'_>, token: &str) {
    let (status, words) = secured.answer(token).await;
    assert_eq!(status, 503, "{words}");
    assert!(!words.contains("kite_"), "{words}");
}

/// However often it is scraped, one question about a token is asked while the answer holds.
async fn one_question_a_minute(secured: &Secured<'_>, token: &str) {
    let audit = secured.cluster.control_plane.audit().unwrap();
    let admin = secured.cluster.client().await;
    let fresh = reader(secured.cluster, "prometheus").await;
    assert_ne!(fresh, token);
    let start = audit.settled_mark(&admin).await.unwrap();
    for _ in 0..10 {
        let (status, text) = secured.answer(&fresh).await;
        assert_eq!(status, 200, "{text}");
        assert!(names(&text).contains("kite_build_info"), "{text}");
    }
    audit.settled_mark(&admin).await.unwrap();
    let asked: Vec<_> = audit
        .since(start)
        .unwrap()
        .into_iter()
        .filter(|request| request.is_by("kite-service") && request.verb == "create")
        .map(|request| request.resource)
        .collect();
    assert_eq!(
        asked,
        [
            "authentication.k8s.io/tokenreviews",
            "authorization.k8s.io/subjectaccessreviews"
        ]
    );
}

async fn a_new_certificate_is_shown(secured: &mut Secured<'_>, token: &str) {
    let old = secured.authority.clone();
    secured.renew();
    assert_eq!(secured.answer(token).await.0, 200);
    let who = || by_token(token.to_owned());
    let by_old = secured.read(&old, who()).await;
    assert_eq!(by_old, None, "the old authority is not that of the new one");
    // Half of a new pair does not end the service.
    std::fs::write(&secured.key, "nonsense").unwrap();
    assert_eq!(secured.answer(token).await.0, 200);
    let log = std::fs::read_to_string(secured.cluster.log("secured")).unwrap();
    assert!(log.contains("the one before stays in force"), "{log}");
}
