//! Which tests name which rules.
//!
//! A rule is named in a comment: above the test, inside it, or at the top of a
//! file for all tests of that file. What stands above a function that is no
//! test, or above a type, proves nothing and does not count. The sources are
//! read line by line as rustfmt leaves them; nothing is compiled.

use std::collections::BTreeSet;

use super::page::{faults, named};
use crate::workspace::Source;

/// One test with what it names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Proof<'a> {
    /// Path of its file from the top folder.
    pub(crate) path: &'a str,
    /// Where its function begins.
    pub(crate) line: usize,
    /// The function's name, which is a sentence.
    pub(crate) test: &'a str,
    /// The rules and faults.
    pub(crate) names: BTreeSet<&'a str>,
}

/// The tests of a file that name at least one rule or fault.
pub(crate) fn proofs(source: &Source) -> Vec<Proof<'_>> {
    let mut reader = Reader::default();
    for (number, line) in source.lines() {
        reader.take(source, number, line);
    }
    let Reader { of_file, found, .. } = reader;
    found
        .into_iter()
        .map(|mut proof| {
            proof.names.extend(&of_file);
            proof
        })
        .filter(|proof| !proof.names.is_empty())
        .collect()
}

/// What was read so far of one file.
#[derive(Default)]
struct Reader<'a> {
    /// Named by the comment that opens the file.
    of_file: BTreeSet<&'a str>,
    /// Named by the comment directly above.
    above: BTreeSet<&'a str>,
    /// Whether an attribute above makes a test of the next function.
    marked: bool,
    /// How far an attribute of several lines is indented, until it is closed.
    attribute: Option<usize>,
    /// How far the test is indented that the line belongs to.
    inside: Option<usize>,
    found: Vec<Proof<'a>>,
}

impl<'a> Reader<'a> {
    fn take(&mut self, source: &'a Source, number: usize, line: &'a str) {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if let Some(outer) = self.inside {
            self.within(outer, indent, text);
        } else if let Some(outer) = self.attribute {
            if indent == outer {
                self.attribute = None;
            }
        } else if text.starts_with("//!") {
            self.of_file.extend(names(text));
        } else if text.starts_with("//") {
            self.above.extend(names(text));
        } else if let Some(attribute) = text.strip_prefix("#[") {
            self.marked |= attribute.starts_with("test]") || attribute.starts_with("tokio::test");
            self.attribute = (!text.ends_with(']')).then_some(indent);
        } else {
            let names = std::mem::take(&mut self.above);
            let marked = std::mem::take(&mut self.marked);
            let Some(name) = function(text).filter(|_| marked) else {
                return;
            };
            self.inside = (!text.ends_with('}')).then_some(indent);
            self.found.push(Proof {
                path: &source.path,
                line: number,
                test: name,
                names,
            });
        }
    }

    /// A line of a test: what its comments name counts for it, up to its closing brace.
    fn within(&mut self, outer: usize, indent: usize, text: &'a str) {
        if indent == outer && text.starts_with('}') {
            self.inside = None;
        } else if text.starts_with("//")
            && let Some(proof) = self.found.last_mut()
        {
            proof.names.extend(names(text));
        }
    }
}

fn names(comment: &str) -> impl Iterator<Item = &str> {
    named(comment).chain(faults(comment))
}

/// The name of the function that a line begins.
fn function(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("async ").unwrap_or(text);
    rest.strip_prefix("fn ")?.split('(').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, Vec<String>)> {
        let source = Source {
            path: "crates/a/tests/b.rs".to_owned(),
            text: text.to_owned(),
        };
        let own = |names: &BTreeSet<&str>| names.iter().map(|n| (*n).to_owned()).collect();
        proofs(&source)
            .iter()
            .map(|p| (format!("{}:{}", p.test, p.line), own(&p.names)))
            .collect()
    }

    fn one(test: &str, names: &[&str]) -> Vec<(String, Vec<String>)> {
        vec![(test.to_owned(), names.iter().map(|n| (*n).into()).collect())]
    }

    #[test]
    fn a_comment_above_a_test_counts_across_attributes_of_any_length() {
        assert_eq!(
            found("// C-1, CR9: it does.\n#[test]\nfn it_does() {}\n"),
            one("it_does:3", &["C-1", "CR9"])
        );
        assert_eq!(
            found(
                "/// C-1\n#[tokio::test(\n    flavor = \"x\"\n)]\n// V-2\n#[ignore = \"y\"]\nasync fn it_does() {\n}\n"
            ),
            one("it_does:7", &["C-1", "V-2"])
        );
    }

    #[test]
    fn a_comment_inside_counts_and_the_next_function_is_another_matter() {
        let text = "mod tests {\n    #[test]\n    fn it_does(\n    ) {\n        f();\n        // V-2\n    }\n\n    // C-1\n    fn helper() {}\n}\n";
        assert_eq!(found(text), one("it_does:3", &["V-2"]));
    }

    #[test]
    fn the_comment_that_opens_a_file_counts_only_if_there_is_a_test() {
        assert_eq!(found("//! Rule C-7.\n\nfn helper() {}\n"), []);
        assert_eq!(
            found("//! Rule C-7.\n\n#[test]\nfn it_does() {}\n"),
            one("it_does:4", &["C-7"])
        );
    }

    #[test]
    fn a_comment_that_belongs_to_something_else_does_not_count() {
        assert_eq!(found("// C-1\nconst A: u8 = 1;\n#[test]\nfn b() {}\n"), []);
        assert_eq!(found("#[test]\nfn b() {\n    let a = \"C-1\";\n}\n"), []);
    }
}
