//! Flags as values and as arguments: what the command line says, in the words of a chart.

use std::fmt::Write;

use anyhow::{Context, Result};
use clap::Arg;

use super::table::{Controller, Flag, SHARED, Takes};

impl Flag {
    /// Where its value stands, for instance `leaderElection.leaseDuration`.
    pub(super) fn place(&self) -> String {
        self.place.map_or_else(|| camel(self.long), str::to_owned)
    }

    /// The type of the value, in the words that [`super::schema`] knows.
    fn kind(&self) -> String {
        match (self.known, self.takes) {
            (Some(known), _) => known.kind.to_owned(),
            (None, Takes::Bool | Takes::Nothing) => "boolean".to_owned(),
            (None, Takes::Time) => "time".to_owned(),
            (None, Takes::Number(least, most)) => format!("integer {least} to {most}"),
            (None, Takes::Word(words)) => format!("one of {}", words.join(", ")),
            (None, Takes::Text) => "string".to_owned(),
        }
    }

    /// The line of the template that gives it to the program.
    fn argument(&self) -> String {
        let value = format!(".Values.{}", self.place());
        let given = self.known.map_or(value.as_str(), |known| known.expression);
        if self.takes == Takes::Nothing {
            return format!(
                "{{{{- if {given} }}}}\n- \"--{}\"\n{{{{- end }}}}\n",
                self.long
            );
        }
        format!(
            "{{{{- include \"kite-common.arg\" (list \"{}\" {given}) }}}}\n",
            self.long
        )
    }
}

/// The template of all arguments of a controller.
pub(super) fn arguments(controller: &Controller) -> String {
    let flags = controller.own.iter().chain(SHARED);
    let lines: String = flags.map(Flag::argument).collect();
    format!(
        "{{{{- define \"{}.args\" -}}}}\n{lines}{{{{- end }}}}\n",
        controller.name
    )
}

/// The values of these flags, as a part of `values.yaml`.
pub(super) fn values(controller: &Controller, flags: &[Flag]) -> Result<String> {
    let mut text = String::new();
    let mut group = None;
    for flag in flags {
        let place = flag.place();
        let (above, key) = match place.split_once('.') {
            Some((above, key)) => (Some(above.to_owned()), key.to_owned()),
            None => (None, place),
        };
        if above != group {
            if let Some(above) = &above {
                write!(text, "\n{above}:\n")?;
            }
            group = above;
        }
        let indent = if group.is_some() { "  " } else { "" };
        let (words, default) = said(controller, flag)?;
        let comment = wrapped(&format!("-- ({}) {words}", flag.kind()), indent);
        write!(text, "{comment}{indent}{key}: {default}\n\n")?;
    }
    Ok(text.replace("\n\n\n", "\n\n"))
}

/// What the program says about a flag, and its default.
fn said(controller: &Controller, flag: &Flag) -> Result<(String, String)> {
    if let Some(known) = flag.known {
        return Ok((known.text.to_owned(), known.default.to_owned()));
    }
    let mut arguments = controller.command.get_arguments();
    let argument = arguments
        .find(|argument| argument.get_long() == Some(flag.long))
        .with_context(|| format!("{} has no --{}", controller.name, flag.long))?;
    let help = argument.get_help().map(ToString::to_string);
    let help = help.with_context(|| format!("--{} has no help", flag.long))?;
    Ok((
        format!("{}.", help.trim_end_matches('.')),
        default(flag, argument)?,
    ))
}

fn default(flag: &Flag, argument: &Arg) -> Result<String> {
    if flag.takes == Takes::Nothing {
        return Ok("false".to_owned());
    }
    let values = argument.get_default_values();
    let value = values.first().and_then(|value| value.to_str());
    let value = value.with_context(|| format!("--{} has no default", flag.long))?;
    Ok(value.to_owned())
}

/// A comment of lines that are not too long.
pub(super) fn wrapped(words: &str, indent: &str) -> String {
    const WIDTH: usize = 88;
    let mut text = String::new();
    let mut line = format!("{indent}#");
    for word in words.split_whitespace() {
        if line.len() + word.len() >= WIDTH {
            text += &(line + "\n");
            line = format!("{indent}#");
        }
        line += " ";
        line += word;
    }
    text + &line + "\n"
}

/// A flag's or a controller's name as the charts write it: `lease-duration` is `leaseDuration`.
pub(crate) fn camel(long: &str) -> String {
    let mut words = long.split('-');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut name, word| {
        let (head, tail) = word.split_at(1);
        name += &head.to_uppercase();
        name += tail;
        name
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_controllers_are_called_in_camel_case() {
        assert_eq!(camel("tick-interval"), "tickInterval");
        assert_eq!(camel("log-format"), "logFormat");
        assert_eq!(camel("settle"), "settle");
        assert_eq!(camel("vm-status"), "vmStatus");
        assert_eq!(camel("datavolume"), "datavolume");
    }

    #[test]
    fn a_long_comment_is_broken_between_words() {
        let text = wrapped(&"word ".repeat(40), "  ");
        assert!(
            text.lines()
                .all(|l| l.starts_with("  # word") && l.len() < 90)
        );
        assert_eq!(text.matches("word").count(), 40);
    }
}
