//! A value as JSON would hold it, in two pieces of memory instead of a tree of small ones.
//!
//! Every pass compares what is wanted with what is there, and two `serde_json::Value`s for that
//! were most of what a pass did that changes nothing.

mod write;

use std::fmt;

use serde::Serialize;
use serde_json::{Error, Map, Value};

/// A value, one token after the other.
#[derive(Default)]
pub(super) struct Tape {
    tokens: Vec<Token>,
    text: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Token {
    Null,
    Bool(bool),
    Int(i64),
    /// What is too large for [`Self::Int`].
    Large(u64),
    Float(f64),
    /// From where to where in the tape's text.
    Text(usize, usize),
    /// All tokens up to this one are items.
    List(usize),
    /// All tokens up to this one are keys with their values.
    Map(usize),
}

impl Tape {
    /// Writes a value down.
    pub(super) fn of(value: &impl Serialize) -> Result<Self, Error> {
        let mut tape = Self::default();
        value.serialize(&mut tape)?;
        Ok(tape)
    }

    /// The whole value.
    pub(super) const fn root(&self) -> Node<'_> {
        Node { tape: self, at: 0 }
    }
}

/// A value on a tape.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    tape: &'a Tape,
    at: usize,
}

impl<'a> Node<'a> {
    fn token(self) -> Token {
        let token = self.tape.tokens.get(self.at);
        token.copied().unwrap_or(Token::Null)
    }

    /// The index of what follows.
    fn end(self) -> usize {
        match self.token() {
            Token::List(end) | Token::Map(end) => end,
            _ => self.at + 1,
        }
    }

    fn follow(self, at: usize) -> Option<Self> {
        let tape = self.tape;
        (at < self.end()).then_some(Self { tape, at })
    }

    fn text(self) -> Option<&'a str> {
        match self.token() {
            Token::Text(start, end) => self.tape.text.get(start..end),
            _ => None,
        }
    }

    pub(super) fn is_null(self) -> bool {
        self.token() == Token::Null
    }

    pub(super) fn is_list(self) -> bool {
        matches!(self.token(), Token::List(_))
    }

    pub(super) fn is_map(self) -> bool {
        matches!(self.token(), Token::Map(_))
    }

    /// The items of a list.
    pub(super) fn items(self) -> impl Iterator<Item = Self> {
        let first = self.follow(self.at + 1).filter(|_| self.is_list());
        std::iter::successors(first, move |item| self.follow(item.end()))
    }

    /// The keys and values of a map, as they were written down.
    pub(super) fn fields(self) -> impl Iterator<Item = (&'a str, Self)> {
        let first = self.follow(self.at + 1).filter(|_| self.is_map());
        let value = move |key: Self| self.follow(key.at + 1);
        let next = move |key: &Self| self.follow(value(*key)?.end());
        std::iter::successors(first, next).filter_map(move |key| Some((key.text()?, value(key)?)))
    }

    /// The value of a key.
    pub(super) fn get(self, key: &str) -> Option<Self> {
        let mut fields = self.fields();
        fields.find(|(k, _)| *k == key).map(|(_, value)| value)
    }

    /// The same as a tree.
    pub(super) fn value(self) -> Value {
        match self.token() {
            Token::Null => Value::Null,
            Token::Bool(bool) => bool.into(),
            Token::Int(int) => int.into(),
            Token::Large(int) => int.into(),
            Token::Float(float) => float.into(),
            Token::Text(..) => self.text().into(),
            Token::List(_) => self.items().map(Self::value).collect(),
            Token::Map(_) => {
                let fields = self.fields().map(|(k, v)| (k.to_owned(), v.value()));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }
}

impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self.token(), other.token()) {
            (Token::Text(..), Token::Text(..)) => self.text() == other.text(),
            (Token::List(_) | Token::Map(_), Token::List(_) | Token::Map(_)) => {
                self.value() == other.value()
            }
            (one, other) => one == other,
        }
    }
}

impl fmt::Display for Node<'_> {
    /// As people write it: text without quotation marks, the rest as JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text() {
            Some(text) => f.write_str(text),
            None => self.value().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tape_holds_what_a_tree_would() {
        let value = json!({
            "null": null, "yes": true, "int": -3, "large": u64::MAX, "float": 1.5, "text": "ü\n",
            "empty": [[], {}, ""], "deep": {"a": [{"b": [1, [2]]}, "c"], "d": {}}, "": 0
        });
        let tape = Tape::of(&value).unwrap();
        assert_eq!(tape.root().value(), value);
        let deep = tape.root().get("deep").unwrap();
        assert_eq!(deep.get("a").unwrap().items().count(), 2);
        assert!(deep.get("b").is_none());
        assert!(
            deep.get("d").unwrap().is_map() && deep.get("d").unwrap().fields().next().is_none()
        );
    }

    #[test]
    fn values_are_equal_when_their_trees_are() {
        let tape = Tape::of(&json!([1, 1, 2, "1", [1], [1], {"a": 1}, null, 1.0])).unwrap();
        let items: Vec<Node<'_>> = tape.root().items().collect();
        for one in &items {
            for other in &items {
                assert_eq!(
                    one == other,
                    one.value() == other.value(),
                    "{one} and {other}"
                );
            }
        }
    }

    #[test]
    fn what_no_object_of_kubernetes_has_is_an_error_and_not_nothing() {
        assert!(Tape::of(&std::collections::BTreeMap::from([(1, 2)])).is_err());
    }
}
