//! One line of a table: a request, and what the answer must be.

use serde_json::{Value, json};

/// One request, and the words of its refusal, or none.
pub(crate) struct Row {
    pub(crate) who: &'static str,
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) body: Value,
    pub(crate) refused: Option<&'static str>,
}

impl Row {
    /// What is not as it should be about an answer.
    pub(crate) fn differs(&self, answer: &Result<Value, String>) -> Option<String> {
        let said = match (self.refused, answer) {
            (None, Ok(_)) => return None,
            (Some(words), Err(said)) if said.contains(words) => return None,
            (_, Ok(_)) => "it was allowed",
            (_, Err(said)) => said,
        };
        let Self {
            who, method, path, ..
        } = self;
        let expected = self.refused.unwrap_or("allowed");
        Some(format!(
            "{who}: {method} {path} {}\n  expected: {expected}\n  answer: {said}",
            self.body
        ))
    }
}

pub(crate) fn row(
    who: &'static str,
    method: &'static str,
    path: &str,
    body: Value,
    refused: Option<&'static str>,
) -> Row {
    let core = path.starts_with("namespaces");
    let path = if core {
        format!("/api/v1/{path}")
    } else {
        format!("/apis/{path}")
    };
    Row {
        who,
        method,
        path,
        body,
        refused,
    }
}

/// A merge patch.
pub(crate) fn edit(
    who: &'static str,
    path: &str,
    body: Value,
    refused: Option<&'static str>,
) -> Row {
    row(who, "PATCH", path, body, refused)
}

pub(crate) fn delete(who: &'static str, path: &str, refused: Option<&'static str>) -> Row {
    row(who, "DELETE", path, Value::Null, refused)
}

pub(crate) fn annotation(key: &str, value: impl Into<Value>) -> Value {
    json!({"metadata": {"annotations": {key: value.into()}}})
}

pub(crate) fn label(key: &str, value: impl Into<Value>) -> Value {
    json!({"metadata": {"labels": {key: value.into()}}})
}
