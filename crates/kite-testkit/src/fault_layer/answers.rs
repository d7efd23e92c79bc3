//! Answers that the API server did not give, in its own form: a `Status` with
//! the reason that it gives with that code.

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};

/// An answer that is made up.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub code: u16,
    /// The body.
    pub body: Value,
    /// `Retry-After`, in seconds.
    pub retry_after: Option<u32>,
}

impl Answer {
    /// A failure with this code, as the server words it.
    pub fn refusal(code: u16) -> Self {
        let (reason, message) = match code {
            401 => ("Unauthorized", "Unauthorized"),
            403 => (
                "Forbidden",
                "is forbidden: User cannot do this at the cluster scope",
            ),
            404 => (
                "NotFound",
                "the server could not find the requested resource",
            ),
            409 => (
                "Conflict",
                "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again",
            ),
            410 => (
                "Expired",
                "The resourceVersion for the provided watch is too old.",
            ),
            422 => ("Invalid", "is invalid: spec: Invalid value"),
            429 => (
                "TooManyRequests",
                "Too many requests, please try again later.",
            ),
            503 => (
                "ServiceUnavailable",
                "the server is currently unable to handle the request",
            ),
            504 => (
                "Timeout",
                "Timeout: request did not complete within the allotted timeout",
            ),
            _ => (
                "InternalError",
                "Internal error occurred: etcdserver: request timed out",
            ),
        };
        Self::status(code, reason, message)
    }

    /// A failure in other words.
    pub fn status(code: u16, reason: &str, message: &str) -> Self {
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code,
        });
        Self {
            code,
            body,
            retry_after: None,
        }
    }

    /// 429 with a time to wait.
    pub fn too_many(seconds: u32) -> Self {
        Self {
            retry_after: Some(seconds),
            ..Self::refusal(429)
        }
    }

    /// 200 with an object of a kind that nobody asked for.
    pub fn wrong_kind() -> Self {
        Self {
            code: 200,
            body: json!({
                "kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [],
            }),
            retry_after: None,
        }
    }

    /// The line that ends an open watch with this answer.
    pub(super) fn watch_line(&self) -> Vec<u8> {
        let mut line = json!({"type": "ERROR", "object": self.body}).to_string();
        line.push('\n');
        line.into_bytes()
    }

    pub(super) fn response(&self) -> Response<Body> {
        let mut response = json_response(self.code, self.body.to_string().into());
        if let Some(seconds) = self.retry_after {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// A response with a JSON body.
pub(super) fn json_response(code: u16, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::OK);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
