//! The command line that all six controllers share, and its checks.
//!
//! Every flag is also an environment variable `KITE_*`. Bad input ends the
//! process with code 2 and a sentence. A controller's own flags are its own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use k8s_openapi::jiff::SignedDuration;

/// How many objects are worked on at the same time unless told otherwise: measured, see decision 25
/// in docs/decisions.md. With more a storm takes longer, and all others wait longer beside it.
const CONCURRENCY: u16 = 4;

/// What every controller can be told.
#[derive(Args, Clone, Debug)]
pub struct Settings {
    /// Kubeconfig file; without it the pod's own account is used, else the default kubeconfig.
    #[arg(
        long,
        env = "KITE_KUBECONFIG",
        value_name = "PATH",
        help_heading = "Connection"
    )]
    pub kubeconfig: Option<PathBuf>,
    /// Longest time one API request may take to answer.
    #[arg(long, env = "KITE_REQUEST_TIMEOUT", default_value = "10s", value_parser = duration, value_name = "TIME", help_heading = "Connection")]
    pub request_timeout: Duration,
    /// Address of /livez, /readyz and /healthz, and of /metrics unless that has one of its own. It is
    /// plain HTTP and open to everybody.
    #[arg(
        long,
        env = "KITE_LISTEN",
        default_value = "0.0.0.0:8080",
        value_name = "ADDRESS",
        help_heading = "Metrics and health"
    )]
    pub listen: SocketAddr,
    /// Address of /metrics alone, which is then not served at the other one; with TLS if
    /// --tls-cert-file is given. The usual port is 8443.
    #[arg(
        long,
        env = "KITE_METRICS_LISTEN",
        value_name = "ADDRESS",
        help_heading = "Metrics and health"
    )]
    pub metrics_listen: Option<SocketAddr>,
    /// Whether to show metrics only to who has a token and the right to get the path /metrics. The
    /// controller must be allowed to create tokenreviews and subjectaccessreviews; it asks once a
    /// minute for each token. Needs --tls-cert-file.
    #[arg(long, env = "KITE_METRICS_AUTH", default_value_t = false, action = ArgAction::Set, value_name = "BOOL", help_heading = "Metrics and health")]
    pub metrics_auth: bool,
    /// Certificate chain for /metrics, PEM; read again when it changes. Needs --metrics-listen.
    #[arg(
        long,
        env = "KITE_TLS_CERT_FILE",
        value_name = "PATH",
        help_heading = "Metrics and health"
    )]
    pub tls_cert_file: Option<PathBuf>,
    /// Key of that certificate, PEM; read again when it changes.
    #[arg(
        long,
        env = "KITE_TLS_KEY_FILE",
        value_name = "PATH",
        help_heading = "Metrics and health"
    )]
    pub tls_key_file: Option<PathBuf>,
    /// Namespace of the Lease; the controller's own.
    #[arg(
        long,
        env = "KITE_NAMESPACE",
        default_value = "kite-system",
        value_name = "NAME",
        help_heading = "Leader election"
    )]
    pub namespace: String,
    /// This replica's name in the Lease; the pod's name.
    #[arg(
        long,
        env = "KITE_IDENTITY",
        value_name = "NAME",
        help_heading = "Leader election"
    )]
    pub identity: Option<String>,
    /// Whether to take the Lease before working.
    #[arg(long, env = "KITE_LEADER_ELECTION", default_value_t = true, action = ArgAction::Set, value_name = "BOOL", help_heading = "Leader election")]
    pub leader_election: bool,
    /// When other replicas may take over from a leader that is silent.
    #[arg(long, env = "KITE_LEASE_DURATION", default_value = "15s", value_parser = duration, value_name = "TIME", help_heading = "Leader election")]
    pub lease_duration: Duration,
    /// How often the leader renews.
    #[arg(long, env = "KITE_RENEW_INTERVAL", default_value = "5s", value_parser = duration, value_name = "TIME", help_heading = "Leader election")]
    pub renew_interval: Duration,
    /// When a leader that cannot renew stops working.
    #[arg(long, env = "KITE_RENEW_DEADLINE", default_value = "10s", value_parser = duration, value_name = "TIME", help_heading = "Leader election")]
    pub renew_deadline: Duration,
    /// How long after a failed renewal the next is tried.
    #[arg(long, env = "KITE_RETRY_INTERVAL", default_value = "2s", value_parser = duration, value_name = "TIME", help_heading = "Leader election")]
    pub retry_interval: Duration,
    /// How many objects are worked on at the same time. More than the API server can do at once
    /// makes nothing faster; where each of its answers takes tens of milliseconds, more helps.
    #[arg(long, env = "KITE_CONCURRENCY", default_value_t = CONCURRENCY, value_parser = clap::value_parser!(u16).range(1..=512), value_name = "N", help_heading = "Work")]
    pub concurrency: u16,
    /// Longest time one pass over one object may take.
    #[arg(long, env = "KITE_PASS_TIMEOUT", default_value = "60s", value_parser = duration, value_name = "TIME", help_heading = "Work")]
    pub pass_timeout: Duration,
    /// How long running passes may take to finish after SIGTERM.
    #[arg(long, env = "KITE_SHUTDOWN_GRACE", default_value = "20s", value_parser = duration, value_name = "TIME", help_heading = "Work")]
    pub shutdown_grace: Duration,
    /// Least severe level that is logged; a filter such as `info,kite_runtime=debug` is understood too.
    #[arg(
        long,
        env = "KITE_LOG_LEVEL",
        default_value = "info",
        value_name = "FILTER",
        help_heading = "Logs"
    )]
    pub log_level: String,
    /// Form of the log lines.
    #[arg(
        long,
        env = "KITE_LOG_FORMAT",
        default_value = "json",
        value_enum,
        value_name = "FORM",
        help_heading = "Logs"
    )]
    pub log_format: LogFormat,
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For a terminal.
    Text,
}

impl Settings {
    /// Checks what one flag alone cannot say. The error is a sentence for people.
    pub fn check(&self) -> Result<(), String> {
        if self.renew_deadline + self.retry_interval >= self.lease_duration {
            return Err(format!(
                "--renew-deadline plus --retry-interval ({:?}) must be less than --lease-duration ({:?}), \
                 or two replicas could work at the same time; the defaults are 10s, 2s and 15s",
                self.renew_deadline + self.retry_interval,
                self.lease_duration
            ));
        }
        if self.renew_interval + self.retry_interval > self.renew_deadline {
            return Err(format!(
                "--renew-interval plus --retry-interval ({:?}) must not exceed --renew-deadline ({:?}), \
                 or one failed renewal would end the leadership",
                self.renew_interval + self.retry_interval,
                self.renew_deadline
            ));
        }
        // The Lease holds whole seconds, and the API server refuses zero.
        if self.lease_duration.as_secs() < 1 {
            return Err("--lease-duration must be at least 1s".to_owned());
        }
        self.check_metrics()
    }

    fn check_metrics(&self) -> Result<(), String> {
        let has_tls = self.tls_cert_file.is_some();
        let wrong = if has_tls != self.tls_key_file.is_some() {
            "--tls-cert-file and --tls-key-file belong together; give both or neither"
        } else if has_tls && self.metrics_listen.is_none() {
            "--tls-cert-file needs --metrics-listen, for instance 0.0.0.0:8443: \
             --listen stays plain, so that probes need no certificate"
        } else if self.metrics_auth && !has_tls {
            "--metrics-auth needs --metrics-listen, --tls-cert-file and --tls-key-file: \
             without TLS everybody on the way could read the tokens"
        } else {
            return Ok(());
        };
        Err(wrong.to_owned())
    }

    /// This replica's name: the flag, else the pod's host name and process id.
    pub fn identity(&self) -> String {
        self.identity.clone().unwrap_or_else(|| {
            let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "local".to_owned());
            format!("{host}_{}", std::process::id())
        })
    }
}

/// Parses `15s`, `500ms`, `10m`, `12h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    text.parse::<SignedDuration>()
        .ok()
        .and_then(|d| Duration::try_from(d).ok())
        .ok_or_else(|| format!("{text:?} is not a time; write for instance 15s, 500ms or 10m"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        settings: Settings,
    }

    fn parse(args: &[&str]) -> Settings {
        Line::parse_from([&["kite-test"], args].concat()).settings
    }

    #[test]
    fn the_defaults_fit_together() {
        assert_eq!(parse(&[]).check(), Ok(()));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
    }

    #[test]
    fn times_that_would_allow_two_leaders_are_refused_with_a_sentence() {
        let error = parse(&["--lease-duration", "10s"]).check().unwrap_err();
        assert!(
            error.contains("must be less than --lease-duration"),
            "{error}"
        );
        assert!(
            parse(&["--renew-interval", "9s"])
                .check()
                .unwrap_err()
                .contains("--renew-interval")
        );
        assert!(duration("soon").unwrap_err().contains("for instance 15s"));
    }

    #[test]
    fn tokens_need_tls_and_tls_a_port_of_its_own() {
        let port = "--metrics-listen=127.0.0.1:8443";
        let (cert, key) = ("--tls-cert-file=a", "--tls-key-file=b");
        for (args, word) in [
            (&[port, cert][..], "belong together"),
            (&[port, key], "belong together"),
            (&[cert, key], "needs --metrics-listen"),
            (&["--metrics-auth=true"], "could read the tokens"),
            (&["--metrics-auth=true", port], "could read the tokens"),
        ] {
            let error = parse(args).check().unwrap_err();
            assert!(error.contains(word), "{args:?}: {error}");
        }
        for args in [&[port][..], &[port, cert, key, "--metrics-auth=true"]] {
            assert_eq!(parse(args).check(), Ok(()));
        }
    }
}
