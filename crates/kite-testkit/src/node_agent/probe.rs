//! The probes of a container: httpGet and tcpSocket, with the pod's own delays,
//! periods, time limits and thresholds.
//!
//! Probes that run a command or speak gRPC are refused, not left out: a pod
//! that asks for one waits and says so. Headers are not sent.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{Container, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{Client, Config};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::http_get;

/// What a probe has found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// The container has started: the other probes begin.
    Started,
    /// Whether the container may be given work.
    Ready(bool),
}

/// A container that is to be ended, since it does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    /// How long it has, when that differs from the pod's own grace.
    pub(super) grace: Option<Duration>,
}

/// The probes of one container.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Probes {
    startup: Option<Check>,
    liveness: Option<Check>,
    readiness: Option<Check>,
}

#[derive(Clone, Debug, PartialEq)]
struct Check {
    how: How,
    delay: Duration,
    period: Duration,
    limit: Duration,
    successes: u32,
    failures: u32,
    grace: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq)]
enum How {
    Http { address: SocketAddr, path: String },
    Https { url: String, path: String },
    Connect(SocketAddr),
}

impl Probes {
    /// Reads them. The error is for the one who wrote the pod.
    pub(super) fn of(container: &Container, ip: Ipv4Addr) -> Result<Self, String> {
        let check = |probe: &Option<Probe>| {
            let probe = probe.as_ref();
            probe
                .map(|probe| Check::of(probe, container, ip))
                .transpose()
        };
        Ok(Self {
            startup: check(&container.startup_probe)?,
            liveness: check(&container.liveness_probe)?,
            readiness: check(&container.readiness_probe)?,
        })
    }

    /// Carries them out until one says that the container must be ended.
    pub(super) async fn watch(&self, seen: impl Fn(Seen)) -> Failed {
        if let Some(startup) = &self.startup
            && !startup.until_decided().await
        {
            return Failed {
                grace: startup.grace,
            };
        }
        seen(Seen::Started);
        let readiness = async {
            match &self.readiness {
                None => seen(Seen::Ready(true)),
                Some(check) => {
                    check
                        .follow(|ready| {
                            seen(Seen::Ready(ready));
                            true
                        })
                        .await;
                }
            }
            std::future::pending::<()>().await;
        };
        let liveness = async {
            let Some(check) = &self.liveness else {
                return std::future::pending().await;
            };
            check.follow(|alive| alive).await;
            Failed { grace: check.grace }
        };
        tokio::select! {
            () = readiness => unreachable!("readiness never ends"),
            failed = liveness => failed,
        }
    }
}

impl Check {
    fn of(probe: &Probe, container: &Container, ip: Ipv4Addr) -> Result<Self, String> {
        let seconds = |value: Option<i32>, default: u64| {
            let value = value.and_then(|value| u64::try_from(value).ok());
            Duration::from_secs(value.unwrap_or(default))
        };
        let times = |value: Option<i32>, default: u32| {
            let value = value.and_then(|value| u32::try_from(value).ok());
            value.unwrap_or(default).max(1)
        };
        let grace = probe.termination_grace_period_seconds;
        let grace = grace.and_then(|seconds| u64::try_from(seconds).ok());
        Ok(Self {
            how: How::of(probe, container, ip)?,
            delay: seconds(probe.initial_delay_seconds, 0),
            // The defaults are those of the API.
            period: seconds(probe.period_seconds, 10).max(Duration::from_secs(1)),
            limit: seconds(probe.timeout_seconds, 1),
            successes: times(probe.success_threshold, 1),
            failures: times(probe.failure_threshold, 3),
            grace: grace.map(Duration::from_secs),
        })
    }

    /// Whether it succeeds at all before it has failed too often.
    async fn until_decided(&self) -> bool {
        let mut result = false;
        self.follow(|succeeds| {
            result = succeeds;
            false
        })
        .await;
        result
    }

    /// Reports each time that a threshold is reached, until the answer is false.
    async fn follow(&self, mut decided: impl FnMut(bool) -> bool) {
        sleep(self.delay).await;
        let mut ticks = interval(self.period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = false;
        let mut run = 0;
        loop {
            ticks.tick().await;
            let succeeds = self.once().await;
            run = if succeeds == last { run + 1 } else { 1 };
            last = succeeds;
            let enough = if succeeds {
                self.successes
            } else {
                self.failures
            };
            if run >= enough && !decided(succeeds) {
                return;
            }
        }
    }

    async fn once(&self) -> bool {
        let asked = timeout(self.limit, self.how.ask()).await;
        matches!(asked, Ok(Ok(true)))
    }
}

impl How {
    fn of(probe: &Probe, container: &Container, ip: Ipv4Addr) -> Result<Self, String> {
        if let Some(get) = &probe.http_get {
            let address = SocketAddr::from((ip, port(&get.port, container)?));
            let path = get.path.clone().unwrap_or_else(|| "/".to_owned());
            return Ok(match get.scheme.as_deref() {
                Some("HTTPS") => Self::Https {
                    url: format!("https://{address}"),
                    path,
                },
                _ => Self::Http { address, path },
            });
        }
        if let Some(socket) = &probe.tcp_socket {
            return Ok(Self::Connect((ip, port(&socket.port, container)?).into()));
        }
        Err("the stand-in for a kubelet carries out httpGet and tcpSocket probes only".into())
    }

    async fn ask(&self) -> Result<bool> {
        let status = match self {
            Self::Connect(address) => {
                TcpStream::connect(address).await?;
                return Ok(true);
            }
            Self::Http { address, path } => http_get::get(*address, path).await?.0,
            Self::Https { url, path } => {
                let mut config = Config::new(url.parse()?);
                // A kubelet does not check the certificate of a probe either.
                config.accept_invalid_certs = true;
                config.default_retry = false;
                let request = http::Request::get(path).body(kube::client::Body::empty())?;
                let answer = Client::try_from(config)?.send(request).await?;
                answer.status().as_u16()
            }
        };
        Ok((200..400).contains(&status))
    }
}

fn port(port: &IntOrString, container: &Container) -> Result<u16, String> {
    let number = match port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            let named = ports.find(|port| port.name.as_ref() == Some(name));
            named.map(|port| port.container_port)
        }
    };
    let number = number.and_then(|number| u16::try_from(number).ok());
    number.ok_or_else(|| format!("the probe's port {port:?} is not a port of the container"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn container(probe: &serde_json::Value) -> Container {
        serde_json::from_value(json!({
            "name": "a",
            "ports": [{"name": "metrics", "containerPort": 8080}],
            "livenessProbe": probe,
        }))
        .unwrap()
    }

    #[test]
    fn a_probe_has_the_defaults_of_the_api_and_finds_a_named_port() {
        let ip = Ipv4Addr::new(127, 1, 2, 3);
        let probe = container(&json!({"httpGet": {"path": "/livez", "port": "metrics"}}));
        let check = Probes::of(&probe, ip).unwrap().liveness.unwrap();
        let address = SocketAddr::from((ip, 8080));
        assert_eq!(
            check.how,
            How::Http {
                address,
                path: "/livez".into()
            }
        );
        assert_eq!((check.period.as_secs(), check.limit.as_secs()), (10, 1));
        assert_eq!((check.successes, check.failures), (1, 3));
    }

    #[test]
    fn a_probe_that_cannot_be_carried_out_is_refused() {
        let ip = Ipv4Addr::LOCALHOST;
        let refused = |probe| Probes::of(&container(&probe), ip).unwrap_err();
        assert!(refused(json!({"exec": {"command": ["true"]}})).contains("httpGet and tcpSocket"));
        assert!(refused(json!({"tcpSocket": {"port": "http"}})).contains("http"));
    }
}
