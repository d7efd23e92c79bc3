//! Reads the pages: which blocks hold commands, what is shown below each, and
//! which of them cannot run.
//!
//! A line of a `console` block that begins with `$ ` is a command; it goes on while
//! lines end in a backslash, or until a here-document ends. What follows is shown.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

/// Fences that nobody takes for something to type.
const NO_COMMANDS: [&str; 4] = ["text", "yaml", "json", "mermaid"];

/// One page of the guide.
pub(crate) struct Page {
    /// The file's name without its ending.
    pub(crate) name: String,
    /// Its blocks of commands, in order.
    pub(crate) blocks: Vec<Block>,
}

/// A fenced block of commands.
pub(crate) struct Block {
    /// Why it cannot run here.
    pub(crate) not_run: Option<String>,
    /// Its commands, in order.
    pub(crate) commands: Vec<Command>,
}

/// What a reader types, and what is shown below it.
pub(crate) struct Command {
    /// Line in the page.
    pub(crate) line: usize,
    /// The command as a shell reads it.
    pub(crate) text: String,
    /// What is shown; nothing where the page shows nothing.
    pub(crate) shown: Vec<String>,
}

/// The folder of the documentation.
pub(crate) fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// All pages of the guide.
pub(crate) fn pages() -> Result<Vec<Page>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(docs().join("guide"))? {
        let path = entry?.path();
        let name = path.file_stem().context("a page without a name")?;
        let name = name.to_string_lossy().into_owned();
        let text = fs::read_to_string(&path)?;
        let blocks = blocks(&text).with_context(|| format!("docs/guide/{name}.md"))?;
        pages.push(Page { name, blocks });
    }
    Ok(pages)
}

/// The blocks of a page.
pub(crate) fn blocks(text: &str) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut mark = None;
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(fence) = line.trim_start().strip_prefix("```") else {
            if !line.trim().is_empty() {
                mark = reason(line);
            }
            continue;
        };
        let indent = line.len() - line.trim_start().len();
        let inside: Vec<(usize, &str)> = lines
            .by_ref()
            .take_while(|(_, line)| line.trim() != "```")
            .map(|(number, line)| (number + 1, line.get(indent..).unwrap_or("").trim_end()))
            .collect();
        let at = number + 1;
        if fence == "console" {
            let commands = commands(&inside).with_context(|| format!("line {at}"))?;
            let not_run = mark.take();
            blocks.push(Block { not_run, commands });
            continue;
        }
        ensure!(
            NO_COMMANDS.contains(&fence),
            "line {at}: `{fence}` cannot be run; commands are told as `console`, other things as one of {NO_COMMANDS:?}"
        );
        ensure!(
            inside.iter().all(|(_, line)| !line.starts_with("$ ")),
            "line {at}: a command in a block of `{fence}`"
        );
    }
    Ok(blocks)
}

/// The reason in `<!-- not run: reason -->`.
fn reason(line: &str) -> Option<String> {
    let inner = line.trim().strip_prefix("<!-- not run:")?;
    let reason = inner.strip_suffix("-->")?.trim();
    (!reason.is_empty()).then(|| reason.to_owned())
}

fn commands(lines: &[(usize, &str)]) -> Result<Vec<Command>> {
    let mut commands: Vec<Command> = Vec::new();
    let mut lines = lines.iter();
    while let Some((number, line)) = lines.next() {
        let Some(first) = line.strip_prefix("$ ") else {
            let Some(command) = commands.last_mut() else {
                bail!("it begins with no command: {line}");
            };
            command.shown.push((*line).to_owned());
            continue;
        };
        let mut text = first.to_owned();
        let end = first.split_once("<<").map(|(_, word)| word.trim());
        let mut last = first;
        let goes_on = |last: &str| end.map_or(last.ends_with('\\'), |end| last != end);
        while goes_on(last) {
            let (_, next) = lines.next().context("a command that does not end")?;
            text.push('\n');
            text.push_str(next);
            last = next;
        }
        commands.push(Command {
            line: *number,
            text,
            shown: Vec::new(),
        });
    }
    ensure!(!commands.is_empty(), "it holds no command");
    Ok(commands)
}

#[test]
fn a_page_is_read_as_a_person_reads_it() {
    let text = "# A\n\n```console\n$ a \\\n  b\nshown\n$ c <<END\nx: y\nEND\n```\n\n\
                <!-- not run: it needs a registry -->\n\n```console\n$ d\n```\n\n```text\nfree\n```\n";
    let read = blocks(text).unwrap();
    let commands: Vec<_> = read.iter().flat_map(|block| &block.commands).collect();
    let texts: Vec<_> = commands.iter().map(|c| c.text.as_str()).collect();
    assert_eq!(texts, ["a \\\n  b", "c <<END\nx: y\nEND", "d"]);
    assert_eq!(commands[0].shown, ["shown"]);
    assert_eq!(commands[1].line, 7);
    assert!(commands[1].shown.is_empty());
    let reasons: Vec<_> = read.iter().map(|block| block.not_run.as_deref()).collect();
    assert_eq!(reasons, [None, Some("it needs a registry")]);
}

#[test]
fn a_block_that_nobody_can_run_is_refused() {
    for text in [
        "```sh\nkubectl get pods\n```\n",
        "```\n$ kubectl get pods\n```\n",
        "```text\n$ kubectl get pods\n```\n",
        "```console\nkubectl get pods\n```\n",
        "```console\n$ kubectl apply -f - <<END\n```\n",
    ] {
        assert!(blocks(text).is_err(), "{text}");
    }
}
