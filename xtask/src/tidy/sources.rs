//! Checks of single source files: length, opening, names, calls that are not made here.

use super::{Problem, Source};

/// A longer file holds two ideas.
const MOST_LINES: usize = 400;

/// The steps of a controller that decide and do nothing.
pub(crate) const PURE_STEPS: [&str; 3] = ["validate", "plan", "status"];

/// What a pure step has no use for.
const IMPURE: [&str; 4] = [".await", "async fn", "kube::Client", "kube::Api"];

/// All problems of all files.
pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    let checks = [length, opening, module_name, merge_patch, pure_step];
    sources
        .iter()
        .flat_map(|source| checks.iter().flat_map(|check| check(source)))
        .collect()
}

fn length(source: &Source) -> Vec<Problem> {
    let lines = source.text.lines().count();
    if lines <= MOST_LINES {
        return Vec::new();
    }
    vec![Problem::new(
        &source.path,
        MOST_LINES + 1,
        format!("{lines} lines, more than {MOST_LINES}; split it where there are two ideas in it"),
    )]
}

fn opening(source: &Source) -> Vec<Problem> {
    if source.text.starts_with("//! ") {
        return Vec::new();
    }
    vec![Problem::new(
        &source.path,
        1,
        "the file does not open with //!; say what it is for and what it deliberately does not do",
    )]
}

fn module_name(source: &Source) -> Vec<Problem> {
    let parts = source.path.trim_end_matches(".rs").split('/');
    let vague = parts
        .into_iter()
        .any(|part| matches!(part, "util" | "utils" | "helpers" | "misc"));
    if !vague {
        return Vec::new();
    }
    vec![Problem::new(
        &source.path,
        1,
        "the module's name does not say what is in it; name it after its subject",
    )]
}

/// The crates that nobody ships: what they do in the place of people is done as people do it.
const NOT_SHIPPED: [&str; 3] = [
    "crates/kite-testkit/",
    "crates/kite-bench/",
    "crates/kite-pass/",
];

/// A merge patch carries neither a resourceVersion nor a field manager's fields.
fn merge_patch(source: &Source) -> Vec<Problem> {
    let shipped = source.path.starts_with("crates/")
        && source.path.contains("/src/")
        && !NOT_SHIPPED.iter().any(|own| source.path.starts_with(own));
    if !shipped {
        return Vec::new();
    }
    source
        .lines()
        .filter(|(_, line)| line.contains(concat!("Patch", "::Merge")) && !is_comment(line))
        .map(|(number, _)| {
            Problem::new(
                &source.path,
                number,
                "a merge patch overwrites what others wrote; use kite_runtime::apply, or a JSON patch with a test",
            )
        })
        .collect()
}

/// Whether a line has this word and not only a longer one that begins with it.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let next = line[at + word.len()..].chars().next();
        !next.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

fn pure_step(source: &Source) -> Vec<Problem> {
    let Some(step) = super::layout::step(&source.path).filter(|s| PURE_STEPS.contains(s)) else {
        return Vec::new();
    };
    source
        .lines()
        .filter(|(_, line)| !is_comment(line) && IMPURE.iter().any(|word| has_word(line, word)))
        .map(|(number, _)| {
            Problem::new(
                &source.path,
                number,
                format!(
                    "{step} is a pure step; move what waits or asks the server to observe or apply"
                ),
            )
        })
        .collect()
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    fn found(path: &str, text: &str) -> Vec<usize> {
        let problems = check(&[source(path, text)]);
        problems.iter().map(|p| p.line).collect()
    }

    #[test]
    fn a_file_of_four_hundred_lines_passes_and_one_more_does_not() {
        let text = format!("//! A.\n{}", "\n".repeat(399));
        assert_eq!(found("crates/a/src/b.rs", &text), [0_usize; 0]);
        assert_eq!(found("crates/a/src/b.rs", &format!("{text}\n")), [401]);
    }

    #[test]
    fn a_file_must_say_what_it_is_for() {
        assert_eq!(found("xtask/src/a.rs", "use std::fs;\n"), [1]);
    }

    #[test]
    fn a_vague_module_name_is_found_as_file_and_as_folder() {
        assert_eq!(found("crates/a/src/utils.rs", "//! A.\n"), [1]);
        assert_eq!(found("crates/a/src/utils/b.rs", "//! A.\n"), [1]);
        assert_eq!(found("crates/a/src/utilities.rs", "//! A.\n"), [0_usize; 0]);
    }

    #[test]
    fn a_merge_patch_is_found_in_what_is_shipped_and_nowhere_else() {
        let text = format!("//! A.\nlet p = {}(x);\n", concat!("Patch", "::Merge"));
        assert_eq!(found("crates/kite-vm/src/apply.rs", &text), [2]);
        assert_eq!(found("crates/kite-testkit/src/a.rs", &text), [0_usize; 0]);
        assert_eq!(found("crates/kite-bench/src/a.rs", &text), [0_usize; 0]);
        assert_eq!(found("crates/kite-vm/tests/a.rs", &text), [0_usize; 0]);
    }

    #[test]
    fn a_pure_step_that_waits_is_found_also_in_a_folder_of_its_own() {
        let text = "//! A.\n// .await is not here\nself.awaited = None;\nlet a = b().await;\n";
        assert_eq!(found("crates/kite-vm/src/plan.rs", text), [4]);
        assert_eq!(found("crates/kite-vm/src/plan/disk.rs", text), [4]);
        assert_eq!(found("crates/kite-vm/src/apply.rs", text), [0_usize; 0]);
        assert_eq!(found("crates/kite-runtime/src/plan.rs", text), [0_usize; 0]);
    }
}
