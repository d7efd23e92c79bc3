//! What the controllers say, read from their own source: each word that may be
//! the reason of a condition or an event, with the text that stands beside it.
//!
//! A text that is put together at another place than its word is not found, and
//! neither are words that come from KubeVirt, CDI or the API server while it
//! runs; nothing is guessed.

use std::collections::BTreeMap;

use kite_api::labels::Controller;

use super::tokens::{Tree, trees};
use crate::workspace::Source;

/// One word of one crate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Said {
    /// The word.
    pub(super) word: String,
    /// The crate that says it.
    pub(super) by: String,
    /// The text beside it, with names in braces for what is put in; empty when it stands elsewhere.
    pub(super) text: String,
}

/// Everything that shipped code says, sorted by word.
pub(super) fn said(sources: &[Source]) -> Vec<Said> {
    let files: Vec<(&str, Vec<Tree>)> = sources
        .iter()
        .filter_map(|source| Some((shipped_by(&source.path)?, trees(&source.text))))
        .map(|(name, file)| (name, without_tests(file)))
        .collect();
    let constants: BTreeMap<String, String> =
        files.iter().flat_map(|(_, file)| constants(file)).collect();
    let mut found = Vec::new();
    for (by, file) in files.iter().filter(|(by, _)| *by != RENDER) {
        let mut reader = Reader {
            by,
            constants: &constants,
            found: &mut found,
        };
        reader.read(file);
    }
    found.sort();
    found.dedup();
    found
}

/// Whether a text has the form of a reason: one CamelCase word.
pub(super) fn is_word(text: &str) -> bool {
    text.len() > 2
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.bytes().all(|b| b.is_ascii_alphanumeric())
        && text.bytes().any(|b| b.is_ascii_lowercase())
}

/// It says nothing by itself that `Wrong` does not list; its constants are the names of children.
const RENDER: &str = "kite-render";

/// The crate whose code this is. What the runtime says is said through the controllers.
fn shipped_by(path: &str) -> Option<&str> {
    let (name, rest) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let ships =
        matches!(name, "kite-api" | RENDER) || Controller::ALL.iter().any(|c| c.name() == name);
    (ships && !rest.ends_with("tests.rs")).then_some(name)
}

/// Leaves out each item that is compiled for tests only.
fn without_tests(file: Vec<Tree>) -> Vec<Tree> {
    let mut kept = Vec::new();
    let mut skips = false;
    for tree in file {
        if let Tree::Group('[', attribute) = &tree {
            let [Tree::Name(cfg), Tree::Group('(', condition)] = attribute.as_slice() else {
                continue;
            };
            skips |= cfg == "cfg" && condition == &[Tree::Name("test".to_owned())];
        }
        let ends = matches!(&tree, Tree::Group('{', _) | Tree::Mark(';'));
        if !skips {
            kept.push(tree);
        } else if ends {
            skips = false;
        }
    }
    kept
}

/// Constants that hold a text: `const NAME: &str = "Word";`.
fn constants(file: &[Tree]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (index, tree) in file.iter().enumerate() {
        if let Tree::Group(_, inner) = tree {
            found.extend(constants(inner));
        }
        if *tree != Tree::Name("const".to_owned()) {
            continue;
        }
        let item = file[index + 1..].iter();
        let item: Vec<_> = item.take_while(|t| **t != Tree::Mark(';')).collect();
        if let (Some(Tree::Name(name)), Some(Tree::Text(word))) = (item.first(), item.last()) {
            found.push((name.clone(), word.clone()));
        }
    }
    found
}

struct Reader<'a> {
    by: &'a str,
    constants: &'a BTreeMap<String, String>,
    found: &'a mut Vec<Said>,
}

impl Reader<'_> {
    /// Keeps what is said, with the constants in it put in.
    fn add(&mut self, word: &str, text: &str) {
        let mut text = text.to_owned();
        for (name, value) in self.constants {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        self.found.push(Said {
            word: word.to_owned(),
            by: self.by.to_owned(),
            text,
        });
    }

    fn read(&mut self, trees: &[Tree]) {
        let parts: Vec<&[Tree]> = trees.split(|t| *t == Tree::Mark(',')).collect();
        for (index, part) in parts.iter().enumerate() {
            let Some(word) = self.word(part) else {
                continue;
            };
            // The note of an event comes after one more word, for what was done.
            let mut beside = parts[index + 1..].iter().take(2);
            if let Some(text) = beside.find_map(|part| text(part)) {
                self.add(&word, &text);
            }
        }
        for tree in trees {
            match tree {
                Tree::Text(word) if is_word(word) => self.add(word, ""),
                Tree::Group(_, inner) => self.read(inner),
                _ => {}
            }
        }
    }

    /// The word that an argument or a field is, by itself or by a constant's name.
    fn word(&self, part: &[Tree]) -> Option<String> {
        let value = match part {
            // `field: value`, but no path.
            [Tree::Name(_), Tree::Mark(':'), rest @ ..]
                if rest.first() != Some(&Tree::Mark(':')) =>
            {
                rest
            }
            _ => part,
        };
        let plain = value.iter().all(|t| {
            matches!(
                t,
                Tree::Text(_) | Tree::Name(_) | Tree::Mark('&' | '*' | ':')
            )
        });
        match value.last()? {
            Tree::Text(text) if plain && is_word(text) => Some(text.clone()),
            Tree::Name(name) if plain => self
                .constants
                .get(name)
                .filter(|text| is_word(text))
                .cloned(),
            _ => None,
        }
    }
}

/// The sentence in an argument: of `format!` its first text, of an array all that is joined.
fn text(part: &[Tree]) -> Option<String> {
    let joins = part.iter().any(|t| *t == Tree::Name("concat".to_owned()));
    part.iter().find_map(|tree| match tree {
        Tree::Text(text) if text.contains(' ') => Some(text.clone()),
        Tree::Group('[', pieces) if joins => Some(joined(pieces)),
        Tree::Group(_, inner) => text(inner),
        _ => None,
    })
}

/// `["a ", name, " b"]` as `a {name} b`.
fn joined(pieces: &[Tree]) -> String {
    pieces
        .split(|t| *t == Tree::Mark(','))
        .map(|piece| match piece {
            [Tree::Text(text)] => text.clone(),
            [.., Tree::Name(name)] => format!("{{{name}}}"),
            [] => String::new(),
            _ => "{}".to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, String)> {
        let source = Source {
            path: "crates/kite-vm/src/plan.rs".to_owned(),
            text: text.to_owned(),
        };
        let said = said(&[source]);
        said.into_iter().map(|s| (s.word, s.text)).collect()
    }

    fn pair(word: &str, text: &str) -> (String, String) {
        (word.to_owned(), text.to_owned())
    }

    #[test]
    fn a_text_is_found_beside_its_word_in_calls_tuples_and_structs() {
        for code in [
            "fn f() { stalled(\"TooBad\", format!(\"no {image} here; ask\")) }",
            "fn f() { event.warning(x, \"TooBad\", \"Apply\", \"no {image} here; ask\".to_owned()) }",
            "fn f() -> X { (\"TooBad\", [\"no \", image, \" here; ask\"].concat()) }",
            "fn f() -> X { X { reason: \"TooBad\", message: \"no {image} here; ask\".into() } }",
            "const BAD: &str = \"TooBad\"; fn f() { say(a::BAD, &\"no {image} here; ask\") }",
        ] {
            let expected = pair("TooBad", "no {image} here; ask");
            assert!(found(code).contains(&expected), "{code}: {:?}", found(code));
        }
    }

    #[test]
    fn what_only_tests_say_is_not_said() {
        let code = "#[cfg(test)] mod tests { fn f() { stalled(\"TooBad\", \"no way\") } }";
        assert_eq!(found(code), []);
        let code = "#[cfg(test)] use a; fn f() { stalled(\"TooBad\", \"no way\") }";
        assert!(found(code).contains(&pair("TooBad", "no way")));
    }

    #[test]
    fn a_constant_in_a_text_is_put_in_and_a_variable_is_not() {
        let code = "const KEY: &str = \"kite.dev/a\"; fn f() { say(\"TooBad\", format!(\"set {KEY}={value} on it\")) }";
        assert!(found(code).contains(&pair("TooBad", "set kite.dev/a={value} on it")));
    }

    #[test]
    fn a_word_without_a_text_is_found_all_the_same() {
        assert_eq!(
            found("fn f() -> &'static str { match x { A => \"TooBad\", _ => \"not a word\" } }"),
            [pair("TooBad", "")]
        );
    }
}
