//! Who may read the metrics, when that is asked for: whoever the API server knows
//! by the token and lets `get` the path `/metrics`.
//!
//! The API server is asked once a minute for each token, when somebody reads, and
//! by one question at a time, however many strangers knock. While it cannot be
//! asked nothing is shown. Nothing here knows what the metrics say.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::Instant;

use super::METRICS_PATH;
use crate::errors::words;

/// For so long an answer holds, as it does for controller-runtime's metrics.
const ALLOWED: Duration = Duration::from_secs(60);
/// A no holds for less: a right that was forgotten is given while somebody looks on.
const REFUSED: Duration = Duration::from_secs(10);
/// So many tokens are remembered; scrapers are few, and strangers may think of many.
const MOST: usize = 64;

/// What the API server says of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// It may read.
    Allowed,
    /// Nobody has this token.
    Stranger,
    /// This user has, and may not read.
    Forbidden(String),
}

/// Asks the API server about tokens, and remembers what it said.
pub(super) struct Readers {
    client: Client,
    /// Until when a verdict holds. Locked for map operations only.
    known: Mutex<HashMap<String, (Instant, Verdict)>>,
    /// Held while the API server is asked, so that it is asked once.
    asking: tokio::sync::Mutex<()>,
}

impl Readers {
    /// Nobody is known yet. The client must be one that writes without leading.
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            known: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// Whether who sent these headers may read; if not, what to answer instead.
    pub(super) async fn admit(&self, headers: &HeaderMap) -> Result<(), Response> {
        let Some(token) = bearer(headers) else {
            return Err(unknown(
                "no token: send that of a user who may get /metrics as Authorization: Bearer TOKEN",
            ));
        };
        match self.verdict(token).await {
            Ok(Verdict::Allowed) => Ok(()),
            Ok(Verdict::Stranger) => Err(unknown("the API server knows nobody by this token")),
            Ok(Verdict::Forbidden(user)) => Err((
                StatusCode::FORBIDDEN,
                format!(
                    "{user} may not get {METRICS_PATH}; bind to it a ClusterRole whose rule has nonResourceURLs [{METRICS_PATH}] and verbs [get]\n"
                ),
            )
                .into_response()),
            Err(error) => {
                // Who knocks is not known yet, so the server's words stay here.
                tracing::warn!(
                    error = words(&error),
                    "metrics are not shown: the API server cannot be asked who may read them"
                );
                let sentence = "the API server cannot be asked whether this token may get /metrics; see the log, and try again\n";
                Err((StatusCode::SERVICE_UNAVAILABLE, sentence).into_response())
            }
        }
    }

    async fn verdict(&self, token: &str) -> kube::Result<Verdict> {
        if let Some(verdict) = self.remembered(token) {
            return Ok(verdict);
        }
        let _one_at_a_time = self.asking.lock().await;
        // Whoever asked meanwhile may have asked the same.
        if let Some(verdict) = self.remembered(token) {
            return Ok(verdict);
        }
        let verdict = self.ask(token).await?;
        self.remember(token, &verdict);
        Ok(verdict)
    }

    async fn ask(&self, token: &str) -> kube::Result<Verdict> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.to_owned()),
                audiences: None,
            },
            ..TokenReview::default()
        };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await?;
        let status = answer.status.unwrap_or_default();
        let Some(user) = status.user.filter(|_| status.authenticated == Some(true)) else {
            return Ok(Verdict::Stranger);
        };
        let name = user.username.clone().unwrap_or_default();
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews
            .create(&PostParams::default(), &may_read(user))
            .await?;
        if answer.status.is_some_and(|status| status.allowed) {
            Ok(Verdict::Allowed)
        } else {
            Ok(Verdict::Forbidden(name))
        }
    }

    fn remembered(&self, token: &str) -> Option<Verdict> {
        let (until, verdict) = self.lock().get(token).cloned()?;
        (until > Instant::now()).then_some(verdict)
    }

    fn remember(&self, token: &str, verdict: &Verdict) {
        let now = Instant::now();
        let mut known = self.lock();
        known.retain(|_, (until, _)| *until > now);
        // What a stranger thinks of must not drive out who may read.
        let is_full = known.len() >= MOST;
        if is_full && *verdict == Verdict::Allowed {
            known.retain(|_, (_, verdict)| *verdict == Verdict::Allowed);
        } else if is_full {
            return;
        }
        let holds = if *verdict == Verdict::Allowed {
            ALLOWED
        } else {
            REFUSED
        };
        known.insert(token.to_owned(), (now + holds, verdict.clone()));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Instant, Verdict)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn may_read(user: UserInfo) -> SubjectAccessReview {
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: user.username,
            groups: user.groups,
            uid: user.uid,
            extra: user.extra,
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some(METRICS_PATH.to_owned()),
                verb: Some("get".to_owned()),
            }),
            resource_attributes: None,
        },
        ..SubjectAccessReview::default()
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn unknown(sentence: &str) -> Response {
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
    (StatusCode::UNAUTHORIZED, challenge, format!("{sentence}\n")).into_response()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_token_is_what_stands_after_the_word_bearer() {
        let token = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static(value));
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(token("Bearer a.b.c").as_deref(), Some("a.b.c"));
        assert_eq!(token("bearer  a").as_deref(), Some("a"));
        for nothing in ["Basic YTpi", "Bearer", "Bearer ", "a.b.c"] {
            assert_eq!(token(nothing), None, "{nothing}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_yes_holds_for_a_minute_and_strangers_drive_nobody_out() {
        let server = tower::service_fn(async |_: http::Request<kube::client::Body>| {
            Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("no server"))
        });
        let readers = Readers::new(Client::new(server, "default"));
        readers.remember("reader", &Verdict::Allowed);
        for stranger in 0..1000 {
            readers.remember(&stranger.to_string(), &Verdict::Stranger);
        }
        assert_eq!(readers.lock().len(), MOST);
        readers.remember("another", &Verdict::Allowed);
        assert_eq!(readers.lock().len(), 2);
        readers.remember("late", &Verdict::Forbidden("bob".to_owned()));
        tokio::time::advance(REFUSED).await;
        assert_eq!(readers.remembered("late"), None);
        assert_eq!(readers.remembered("reader"), Some(Verdict::Allowed));
        tokio::time::advance(ALLOWED).await;
        assert_eq!(readers.remembered("reader"), None);
        assert!(
            readers.verdict("reader").await.is_err(),
            "the server is asked again"
        );
    }
}
