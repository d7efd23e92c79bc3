//! Counts what a client sends, by what was answered.
//!
//! It sits next to the connection, inside all that may keep a request back, so
//! that only what was really sent counts. A request that is given up, at its
//! deadline for instance, counts as one without an answer. No URL is kept.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Method, Request, Response};
use prometheus::IntCounterVec;
use tower::{Layer, Service};

/// What client-go calls the code of a request that got none.
const NO_ANSWER: &str = "<error>";

/// Makes a client count its requests.
#[derive(Clone, Debug)]
pub(crate) struct CountRequests(pub(super) IntCounterVec);

impl<S> Layer<S> for CountRequests {
    type Service = Counting<S>;

    fn layer(&self, inner: S) -> Counting<S> {
        Counting {
            inner,
            requests: self.0.clone(),
        }
    }
}

/// A client that counts its requests.
#[derive(Clone, Debug)]
pub(crate) struct Counting<S> {
    inner: S,
    requests: IntCounterVec,
}

/// One request under way. It counts when it is dropped, whatever became of it.
struct Sent {
    requests: IntCounterVec,
    method: Method,
    code: Option<u16>,
}

impl Drop for Sent {
    fn drop(&mut self) {
        let code = self
            .code
            .map_or_else(|| NO_ANSWER.to_owned(), |code| code.to_string());
        self.requests
            .with_label_values(&[code.as_str(), self.method.as_str()])
            .inc();
    }
}

impl<S, A, B> Service<Request<A>> for Counting<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let sent = Sent {
            requests: self.requests.clone(),
            method: request.method().clone(),
            code: None,
        };
        let answer = self.inner.call(request);
        Box::pin(async move {
            // The whole of it goes along, or it would be dropped here and now.
            let mut sent = sent;
            let answer = answer.await?;
            sent.code = Some(answer.status().as_u16());
            Ok(answer)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prometheus::Registry;
    use tower::timeout::TimeoutLayer;
    use tower::{BoxError, ServiceBuilder, ServiceExt as _, service_fn};

    use super::*;
    use crate::metrics::table::REQUESTS;

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_by_its_code_and_silence_as_an_error() {
        let requests = REQUESTS.counters(&Registry::new()).unwrap();
        let server = service_fn(async |request: Request<u16>| match request.into_body() {
            0 => std::future::pending().await,
            1 => Err("no route to host".into()),
            code => Ok::<_, BoxError>(Response::builder().status(code).body(()).unwrap()),
        });
        let client = ServiceBuilder::new()
            .layer(TimeoutLayer::new(Duration::from_secs(1)))
            .layer(CountRequests(requests.clone()))
            .service(server);
        for answer in [200, 200, 409, 0, 1] {
            let request = Request::builder().method("PATCH").body(answer).unwrap();
            let _ = client.clone().oneshot(request).await;
        }
        let counted = |code: &str| requests.with_label_values(&[code, "PATCH"]).get();
        assert_eq!(
            (counted("200"), counted("409"), counted(NO_ANSWER)),
            (2, 1, 2)
        );
    }
}
