//! The way of one request through the layer.
//!
//! Each request is a task of its own, apart from its connection: what was held
//! is delivered, and what was sent is applied, though its sender is dead.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use http::request::Parts;
use http::{HeaderMap, Request, Response, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use super::answers::json_response;
use super::request::{Asked, version_in};
use super::rules::{Act, Rule};
use super::watches::{Open, streamed};
use super::{Link, Shared};

/// How long a process lives at most after the reply that it is killed after.
const LAST_BREATH: Duration = Duration::from_millis(200);

/// The connection ends without an answer.
#[derive(Debug)]
struct Silence;

impl std::fmt::Display for Silence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no answer")
    }
}

impl std::error::Error for Silence {}

pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).ok();
        tokio::spawn(connection(stream, Arc::clone(&shared)));
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(|request| answer(Arc::clone(&shared), request));
    // It ends with an error whenever a rule says so, or the process dies.
    http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await
        .ok();
}

async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Silence> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(Body::new(body), usize::MAX).await;
    let body = body.map_err(|_| Silence)?;
    let asked = Asked::read(&parts.method, &parts.uri, &body);
    if asked.is_write() && !asked.is_upkeep() && shared.doomed.load(Ordering::SeqCst) {
        shared.kill();
        return Err(Silence);
    }
    let (number, life, rule) = shared.arrived(&asked);
    let call = Call {
        shared,
        parts,
        body,
        asked,
        number,
        life,
    };
    let task = tokio::spawn(call.answered(rule));
    task.await.map_err(|_| Silence)?
}

/// One request on its way.
struct Call {
    shared: Arc<Shared>,
    parts: Parts,
    body: Bytes,
    asked: Asked,
    number: usize,
    life: usize,
}

/// What the server, or a rule in its place, answered.
struct Answered {
    code: u16,
    response: Response<Body>,
}

type Outcome = Result<Answered, Silence>;

impl Call {
    /// Through the link as it is, and the rule, to an answer.
    async fn answered(self, rule: Option<Rule>) -> Result<Response<Body>, Silence> {
        self.through_the_link().await?;
        let outcome = match &rule {
            None => self.forward().await,
            Some(rule) => self.act(rule).await,
        };
        self.through_the_link().await?;
        let answered = outcome?;
        let now = self.shared.began.elapsed();
        self.shared.note(self.number, |seen| {
            seen.code = Some(answered.code);
            seen.answered = Some(now);
        });
        Ok(answered.response)
    }

    async fn through_the_link(&self) -> Result<(), Silence> {
        let mut link = self.shared.link.subscribe();
        let open = link.wait_for(|link| *link != Link::Silent).await;
        match open.map(|link| *link) {
            Ok(Link::Up) => Ok(()),
            _ => Err(Silence),
        }
    }

    async fn act(&self, rule: &Rule) -> Outcome {
        let act = rule.act();
        if !matches!(act, Act::HoldBefore | Act::HoldApplied) {
            let outcome = self.act_now(act).await;
            rule.acted();
            return outcome;
        }
        if let Act::HoldBefore = act {
            let Some(tell) = rule.held().await else {
                return Err(Silence);
            };
            // Delivered by the test's wish, even after the sender's death.
            let outcome = self.send().await;
            let _ = tell.send(outcome.as_ref().ok().map(|a| a.code));
            return outcome;
        }
        let outcome = self.forward().await;
        match rule.held().await {
            Some(tell) => {
                let _ = tell.send(outcome.as_ref().ok().map(|a| a.code));
                outcome
            }
            None => Err(Silence),
        }
    }

    async fn act_now(&self, act: Act) -> Outcome {
        match act {
            Act::KillBefore => {
                self.shared.kill();
                Err(Silence)
            }
            Act::KillAfterApplied => {
                let _applied = self.forward().await;
                self.shared.kill();
                Err(Silence)
            }
            Act::KillAfterReply => {
                let outcome = self.forward().await;
                self.doom();
                outcome
            }
            Act::Delay(time) => {
                tokio::time::sleep(time).await;
                self.forward().await
            }
            Act::Drop => Err(Silence),
            Act::LoseReply => {
                let _applied = self.forward().await;
                Err(Silence)
            }
            Act::Withhold => std::future::pending().await,
            Act::Duplicate => {
                let outcome = self.forward().await;
                let _again = self.forward().await;
                outcome
            }
            Act::Answer(answer) => Ok(Answered {
                code: answer.code,
                response: answer.response(),
            }),
            Act::AnswerAfterApplied(answer) => {
                let _applied = self.forward().await;
                Ok(Answered {
                    code: answer.code,
                    response: answer.response(),
                })
            }
            Act::Truncate => self.truncated().await,
            Act::StaleList => self.stale(),
            Act::First(hook) => {
                hook().await;
                self.forward().await
            }
            Act::HoldBefore | Act::HoldApplied => self.forward().await,
        }
    }

    /// Has the process die soon, and before it writes again.
    fn doom(&self) {
        self.shared.doomed.store(true, Ordering::SeqCst);
        let (shared, life) = (Arc::clone(&self.shared), self.life);
        tokio::spawn(async move {
            tokio::time::sleep(LAST_BREATH).await;
            if shared.life.load(Ordering::SeqCst) == life {
                shared.kill();
            }
        });
    }

    /// A watch has no half, so this is for what is answered as a whole.
    async fn truncated(&self) -> Outcome {
        let answered = self.forward().await?;
        let body = to_bytes(answered.response.into_body(), usize::MAX).await;
        let body = body.map_err(|_| Silence)?;
        let half = body.slice(..body.len() / 2);
        Ok(Answered {
            code: answered.code,
            response: json_response(answered.code, half.into()),
        })
    }

    fn stale(&self) -> Outcome {
        let kept = self.shared.kept_lists.lock().unwrap();
        let body = kept.get(&self.asked.list_key()).cloned();
        let body = match body {
            Some(list) if self.asked.streams => streamed(&list).map(Bytes::from),
            list => list,
        };
        body.map_or(Err(Silence), |body| {
            Ok(Answered {
                code: 200,
                response: json_response(200, body.into()),
            })
        })
    }

    /// Sends it on, unless its sender is dead.
    async fn forward(&self) -> Outcome {
        if self.shared.life.load(Ordering::SeqCst) != self.life {
            return Err(Silence);
        }
        self.send().await
    }

    async fn send(&self) -> Outcome {
        let mut request = Request::new(kube::client::Body::from(self.body.clone()));
        *request.method_mut() = self.parts.method.clone();
        *request.uri_mut() = self.parts.uri.clone();
        *request.headers_mut() = forwarded(&self.parts.headers);
        if self.asked.verb == "list" {
            let mut lists = self.shared.asked_lists.lock().unwrap();
            lists.insert(self.asked.list_key(), of_list(&self.parts.headers));
        }
        // A server that cannot be reached looks to the process as if it had tried itself.
        let response = self.shared.upstream.send(request).await;
        let (parts, body) = response.map_err(|_| Silence)?.into_parts();
        let code = parts.status.as_u16();
        let body = if self.asked.streams && code == 200 {
            let open = Open {
                shared: Arc::clone(&self.shared),
                kind: self.asked.resource.clone(),
            };
            open.body(Body::new(body).into_data_stream())
        } else {
            let bytes = body.collect_bytes().await.map_err(|_| Silence)?;
            let version = version_in(&bytes);
            self.shared
                .note(self.number, |seen| seen.answer_version = version);
            Body::from(bytes)
        };
        let mut response = Response::new(body);
        *response.status_mut() = parts.status;
        *response.headers_mut() = forwarded(&parts.headers);
        Ok(Answered { code, response })
    }
}

impl Shared {
    /// A list as it is now.
    pub(super) async fn list_now(&self, uri: &str, headers: HeaderMap) -> anyhow::Result<Bytes> {
        let mut request = Request::new(kube::client::Body::empty());
        *request.uri_mut() = uri.parse()?;
        *request.headers_mut() = headers;
        let response = self.upstream.send(request).await?;
        anyhow::ensure!(response.status().is_success(), "{}", response.status());
        Ok(response.into_body().collect_bytes().await?)
    }
}

/// The headers of the list of what a streamed list shows one by one.
fn of_list(headers: &HeaderMap) -> HeaderMap {
    let mut headers = forwarded(headers);
    if let Some(accept) = headers.get_mut(header::ACCEPT)
        && let Ok(each) = accept.to_str()
        && let Ok(all) = each
            .replace("as=PartialObjectMetadata;", "as=PartialObjectMetadataList;")
            .parse()
    {
        *accept = all;
    }
    headers
}

/// Headers that say something about the request or answer and not about one connection.
fn forwarded(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for own in [
        header::HOST,
        header::CONNECTION,
        header::TRANSFER_ENCODING,
        header::CONTENT_LENGTH,
    ] {
        headers.remove(own);
    }
    headers
}
