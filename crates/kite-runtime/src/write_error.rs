//! Why a write did not come to be, in words that say to which object, what the
//! answer was and what happens next.

use crate::errors::{Class, Failure, Refusal, refusal, words};

/// Why a write did not come to be.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// An object of that name is there and is not ours. Nothing was written to it.
    #[error(
        "{kind} {name} exists and was not made by Kite for this object; rename or remove it, then Kite makes its own"
    )]
    NameConflict {
        /// Kind of the foreign object.
        kind: String,
        /// Its name.
        name: String,
    },
    /// Our own object is being deleted; its successor is made when it is gone.
    #[error("{kind} {name} is being deleted; it is made anew when it is gone")]
    Terminating {
        /// Kind.
        kind: String,
        /// Name.
        name: String,
    },
    /// The object changed between our look at it and a patch; look again.
    #[error("cannot {doing} {kind} {name}: it changed in between; it is looked at again")]
    Stale {
        /// What was being done.
        doing: &'static str,
        /// Kind.
        kind: String,
        /// Name.
        name: String,
    },
    /// The answer was about something else, so what became of the request is unknown.
    #[error("cannot {doing} {kind} {name}: the answer is not about it; it is looked at again")]
    Odd {
        /// What was being done.
        doing: &'static str,
        /// Kind.
        kind: String,
        /// Name.
        name: String,
    },
    /// The server refused.
    #[error("cannot {doing} {kind} {name}: {}", why(.source))]
    Api {
        /// What was being done.
        doing: &'static str,
        /// Kind.
        kind: String,
        /// Name.
        name: String,
        /// The answer.
        source: kube::Error,
    },
    /// The object cannot be written as JSON, which is a defect.
    #[error("cannot write {kind} {name} as JSON: {source}")]
    Unserialisable {
        /// Kind.
        kind: String,
        /// Name.
        name: String,
        /// The serialiser's words.
        source: serde_json::Error,
    },
}

impl WriteError {
    /// Why the server refused, if it did.
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Api { source, .. } => Some(refusal(source)),
            Self::Stale { .. } => Some(Refusal::Conflict),
            Self::Odd { .. } => Some(Refusal::Transient),
            Self::NameConflict { .. } | Self::Terminating { .. } | Self::Unserialisable { .. } => {
                None
            }
        }
    }
}

impl Failure for WriteError {
    fn class(&self) -> Class {
        match self {
            // Back-off of at most a minute, until the foreign object is gone (rule C-7).
            Self::NameConflict { .. } | Self::Terminating { .. } => Class::NotReady,
            Self::Api { source, .. } => refusal(source).class(),
            Self::Stale { .. } => Class::Conflict,
            Self::Odd { .. } => Class::Transient,
            Self::Unserialisable { .. } => Class::Invalid,
        }
    }
}

/// The server's words, or ours where they do not say what is wrong.
fn why(error: &kube::Error) -> String {
    match refusal(error) {
        Refusal::KindMissing => {
            "this cluster does not serve the kind; it goes on when the kind is installed".to_owned()
        }
        _ => words(error),
    }
}

pub(crate) fn api_error(
    doing: &'static str,
    kind: String,
    name: &str,
    source: kube::Error,
) -> WriteError {
    WriteError::Api {
        doing,
        kind,
        name: name.to_owned(),
        source,
    }
}
