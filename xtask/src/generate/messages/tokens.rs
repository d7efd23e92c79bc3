//! Rust's source as its tokens, grouped by brackets: enough to find an argument
//! and what stands beside it. Nothing is known here of types or names.
//!
//! The parser that procedural macros use would do as well; as a dependency of a
//! program it would have every such macro built a second time.

use std::iter::Peekable;
use std::str::Chars;

/// One token, or what stands between two brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    /// A name, a keyword or a number.
    Name(String),
    /// What a string means.
    Text(String),
    /// One mark; longer ones come in a row.
    Mark(char),
    /// A group, by its opening bracket.
    Group(char, Vec<Tree>),
}

/// The tokens of a file; comments and the values of characters are left out.
pub(super) fn trees(source: &str) -> Vec<Tree> {
    let mut reader = Reader {
        rest: source.chars().peekable(),
    };
    reader.group(None)
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
}

impl Reader<'_> {
    /// Everything up to the closing bracket, or to the end.
    fn group(&mut self, close: Option<char>) -> Vec<Tree> {
        let mut found = Vec::new();
        while let Some(c) = self.rest.next() {
            match c {
                _ if Some(c) == close => break,
                _ if c.is_whitespace() => {}
                '/' if self.rest.peek() == Some(&'/') => self.skip_line(),
                '(' => found.push(Tree::Group(c, self.group(Some(')')))),
                '[' => found.push(Tree::Group(c, self.group(Some(']')))),
                '{' => found.push(Tree::Group(c, self.group(Some('}')))),
                '"' => found.push(Tree::Text(self.text())),
                '\'' => self.skip_char(),
                _ if c.is_alphanumeric() || c == '_' => found.push(self.name(c)),
                _ => found.push(Tree::Mark(c)),
            }
        }
        found
    }

    fn skip_line(&mut self) {
        while self.rest.next().is_some_and(|c| c != '\n') {}
    }

    /// A name; or a raw text, whose `r` looks like one.
    fn name(&mut self, first: char) -> Tree {
        let mut name = String::from(first);
        while let Some(c) = self.rest.next_if(|c| c.is_alphanumeric() || *c == '_') {
            name.push(c);
        }
        let raw = matches!(name.as_str(), "r" | "br");
        match self.rest.peek() {
            Some('"') if raw => {
                self.rest.next();
                Tree::Text(self.raw_text(0))
            }
            Some('#') if raw => {
                let mut fence = 0;
                while self.rest.next_if_eq(&'#').is_some() {
                    fence += 1;
                }
                self.rest.next();
                Tree::Text(self.raw_text(fence))
            }
            _ => Tree::Name(name),
        }
    }

    fn raw_text(&mut self, fence: usize) -> String {
        let end = ["\"", &"#".repeat(fence)].concat();
        let mut text = String::new();
        for c in self.rest.by_ref() {
            text.push(c);
            if let Some(whole) = text.strip_suffix(&end) {
                return whole.to_owned();
            }
        }
        text
    }

    /// The rest of a text, with its escapes resolved that a message may hold.
    fn text(&mut self) -> String {
        let mut text = String::new();
        while let Some(c) = self.rest.next() {
            match c {
                '"' => break,
                '\\' => match self.rest.next() {
                    Some('n') => text.push('\n'),
                    Some('\n') => while self.rest.next_if(|c| c.is_whitespace()).is_some() {},
                    Some(other) => text.push(other),
                    None => break,
                },
                _ => text.push(c),
            }
        }
        text
    }

    /// A character, or the name of a lifetime, which has no end mark and stays as a name.
    fn skip_char(&mut self) {
        let mut ahead = self.rest.clone();
        let escaped = ahead.next() == Some('\\');
        if !escaped && ahead.next() != Some('\'') {
            return;
        }
        self.rest.next();
        if escaped {
            self.rest.next();
        }
        while self.rest.next().is_some_and(|c| c != '\'') {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Tree {
        Tree::Text(text.to_owned())
    }

    fn name(name: &str) -> Tree {
        Tree::Name(name.to_owned())
    }

    #[test]
    fn texts_are_what_they_mean_and_comments_are_not_there() {
        assert_eq!(
            trees("// \"no\"\n\"a \\\"b\\\" \\\n   c\" r#\"d \"e\"\"# br\"f\" b\"g\""),
            [
                text("a \"b\" c"),
                text("d \"e\""),
                text("f"),
                name("b"),
                text("g")
            ]
        );
    }

    #[test]
    fn brackets_and_quotes_in_characters_are_no_groups_and_no_texts() {
        assert_eq!(
            trees("'(' '\"' '\\'' '\\u{7d}' <'a> (x)"),
            [
                Tree::Mark('<'),
                name("a"),
                Tree::Mark('>'),
                Tree::Group('(', vec![name("x")])
            ]
        );
    }

    #[test]
    fn groups_nest() {
        assert_eq!(
            trees("f(a, [1])"),
            [
                name("f"),
                Tree::Group(
                    '(',
                    vec![
                        name("a"),
                        Tree::Mark(','),
                        Tree::Group('[', vec![name("1")])
                    ]
                )
            ]
        );
    }
}
