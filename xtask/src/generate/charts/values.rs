//! Reading a `values.yaml`: each value with its type, its words and its default.
//!
//! A value is described by the comment above it, `# -- (type) words`, which may
//! go on over more lines. A mapping without such a comment is a group, and each
//! value in it has its own. A value without a description is an error, so that
//! no table and no schema can lack one.

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A value that is described.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Its place, key by key.
    pub(super) path: Vec<String>,
    /// Its type, in the words that [`super::schema`] knows.
    pub(super) kind: String,
    pub(super) text: String,
    pub(super) default: Value,
}

impl Entry {
    /// Its place as one writes it behind `--set`.
    pub(super) fn place(&self) -> String {
        self.path.join(".")
    }
}

/// All values, in the order of the file.
pub(super) fn read(text: &str) -> Result<Vec<Entry>> {
    let defaults: Value = serde_saphyr::from_str(text)?;
    let mut reader = Reader::default();
    for (number, line) in (1..).zip(text.lines()) {
        reader
            .line(line)
            .with_context(|| format!("line {number}: {line}"))?;
    }
    let found = reader.found.into_iter().map(|(path, comment)| {
        let (kind, text) = comment
            .split_once(") ")
            .context("a comment without a type")?;
        let default = path
            .iter()
            .fold(&defaults, |value, key| &value[key])
            .clone();
        Ok(Entry {
            kind: kind.to_owned(),
            text: text.to_owned(),
            default,
            path,
        })
    });
    found.collect()
}

#[derive(Default)]
struct Reader {
    found: Vec<(Vec<String>, String)>,
    /// The groups around the line, each with its indentation.
    around: Vec<(usize, String)>,
    /// The description that waits for its value.
    comment: Option<String>,
    /// The indentation of the described value whose default is being passed over.
    inside: Option<usize>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<()> {
        let words = line.trim_start();
        let indent = line.len() - words.len();
        if let Some(comment) = words.strip_prefix('#') {
            self.comment(comment.trim());
            return Ok(());
        }
        if words.is_empty() {
            // A comment that is followed by nothing is a heading.
            self.comment = None;
            return Ok(());
        }
        if self.inside.is_some_and(|outer| indent > outer) {
            return Ok(());
        }
        let (key, default) = words.split_once(':').context("no `key: value`")?;
        self.around.retain(|(outer, _)| *outer < indent);
        let mut path: Vec<String> = self.around.iter().map(|(_, key)| key.clone()).collect();
        path.push(key.to_owned());
        self.inside = None;
        match self.comment.take() {
            Some(comment) => {
                self.inside = Some(indent);
                self.found.push((path, comment));
            }
            None if default.trim().is_empty() => self.around.push((indent, key.to_owned())),
            None => bail!("it has no description; write `# -- (type) words` above it"),
        }
        Ok(())
    }

    fn comment(&mut self, words: &str) {
        if let Some(start) = words.strip_prefix("-- (") {
            self.comment = Some(start.to_owned());
        } else if let Some(comment) = &mut self.comment {
            *comment += " ";
            *comment += words;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_its_place_its_type_its_words_and_its_default() {
        let text = "# A heading.\n\na:\n  # -- (integer 0 to 3) How\n  # many.\n  b: 2\n\
                    # -- (object) All of it.\nc:\n  d:\n    - 1\n";
        let entries = read(text).unwrap();
        assert_eq!(entries[0].place(), "a.b");
        assert_eq!(entries[0].kind, "integer 0 to 3");
        assert_eq!(entries[0].text, "How many.");
        assert_eq!(entries[0].default, 2);
        assert_eq!(entries[1].place(), "c");
        assert_eq!(entries[1].default, serde_json::json!({"d": [1]}));
    }

    #[test]
    fn a_value_without_a_description_is_an_error_that_shows_the_line() {
        let error = format!("{:#}", read("a: 1\n").unwrap_err());
        assert!(
            error.contains("line 1: a: 1") && error.contains("no description"),
            "{error}"
        );
    }
}
