//! A server that has not time says when to come back (`Retry-After`), and until
//! then nothing is sent to it at all (row AP3).
//!
//! It counts what a process asks as a whole, so the whole process waits. The
//! client of the Lease is another one and does not: it sends little, and late
//! renewals would only bring a new leader with all its lists.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{Response, header};
use tokio::time::{Instant, Sleep, sleep_until};
use tower::{Layer, Service};

/// A time beyond this is somebody's mistake on the way to the server.
const LONGEST: Duration = Duration::from_secs(300);

/// Makes a client keep away for as long as it is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryAfterLayer;

impl<S> Layer<S> for RetryAfterLayer {
    type Service = RetryAfter<S>;

    fn layer(&self, inner: S) -> RetryAfter<S> {
        RetryAfter {
            inner,
            until: Arc::default(),
            pause: None,
        }
    }
}

/// A client that keeps away for as long as it is told.
pub(crate) struct RetryAfter<S> {
    inner: S,
    /// Locked for single looks, by answers that say so and before each request.
    until: Arc<Mutex<Option<Instant>>>,
    pause: Option<Pin<Box<Sleep>>>,
}

type Answer<R, E> = Pin<Box<dyn Future<Output = Result<R, E>> + Send>>;

impl<S, R, B> Service<R> for RetryAfter<S>
where
    S: Service<R, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Answer<S::Response, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        loop {
            if let Some(pause) = self.pause.as_mut() {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            let until = self
                .until
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            match until.filter(|until| *until > Instant::now()) {
                Some(until) => self.pause = Some(Box::pin(sleep_until(until))),
                None => return self.inner.poll_ready(context),
            }
        }
    }

    fn call(&mut self, request: R) -> Self::Future {
        let (answer, until) = (self.inner.call(request), Arc::clone(&self.until));
        Box::pin(async move {
            let response = answer.await?;
            if let Some(wait) = asked_to_wait(&response) {
                let wanted = Instant::now() + wait.min(LONGEST);
                let mut until = until.lock().unwrap_or_else(PoisonError::into_inner);
                *until = (*until).max(Some(wanted));
            }
            Ok(response)
        })
    }
}

fn asked_to_wait<B>(response: &Response<B>) -> Option<Duration> {
    let refuses = matches!(response.status().as_u16(), 429 | 503);
    let wait = response.headers().get(header::RETRY_AFTER)?;
    let seconds = wait.to_str().ok()?.parse().ok()?;
    refuses.then(|| Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tower::{ServiceExt as _, service_fn};

    use super::*;

    // AP3
    #[tokio::test(start_paused = true)]
    async fn nothing_is_sent_before_the_time_that_the_server_named() {
        let answer = |status: u16| {
            let busy = Response::builder()
                .status(status)
                .header("Retry-After", "7");
            Ok::<_, Infallible>(busy.body(()).unwrap())
        };
        let inner = service_fn(move |status: u16| std::future::ready(answer(status)));
        let mut client = RetryAfterLayer.layer(inner);
        let began = Instant::now();
        for (status, waited) in [(429, 0), (503, 7), (200, 14), (200, 14)] {
            let ready = client.ready().await.unwrap();
            assert_eq!(began.elapsed().as_secs(), waited);
            ready.call(status).await.unwrap();
        }
    }
}
