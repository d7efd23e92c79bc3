//! The six controllers are built alike: the same file names, a short main.

use std::collections::BTreeSet;

use kite_api::labels::Controller;

use super::{Problem, Source};

/// The files that a controller may have, as the architecture page names them.
const FILES: [&str; 9] = [
    "main",
    "lib",
    "controller",
    "reconcile",
    "observe",
    "validate",
    "plan",
    "apply",
    "status",
];

/// The files that every controller has.
const NEEDED: [&str; 4] = ["main", "lib", "controller", "reconcile"];

/// A main that is longer does more than hand over.
const LONGEST_MAIN: usize = 30;

/// The part of a controller that a path belongs to: a file's name, or its folder's.
pub(super) fn step(path: &str) -> Option<&str> {
    let (name, rest) = path.strip_prefix("crates/")?.split_once("/src/")?;
    if !Controller::ALL.iter().any(|c| c.name() == name) {
        return None;
    }
    let part = rest.split('/').next()?;
    Some(part.strip_suffix(".rs").unwrap_or(part))
}

/// All problems of layout.
pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    let mut problems: Vec<_> = sources.iter().filter_map(unknown_file).collect();
    problems.extend(sources.iter().filter_map(long_main));
    for controller in Controller::ALL {
        problems.extend(missing(controller.name(), sources));
    }
    problems
}

fn unknown_file(source: &Source) -> Option<Problem> {
    let step = step(&source.path)?;
    (!FILES.contains(&step)).then(|| {
        Problem::new(
            &source.path,
            1,
            format!(
                "a controller has only the parts {}; move this into the one it belongs to, as a file below that part's folder if need be",
                FILES.join(", ")
            ),
        )
    })
}

fn long_main(source: &Source) -> Option<Problem> {
    let lines = source.text.lines().count();
    (step(&source.path) == Some("main") && lines > LONGEST_MAIN).then(|| {
        Problem::new(
            &source.path,
            LONGEST_MAIN + 1,
            format!("main has {lines} lines, more than {LONGEST_MAIN}; it only reads settings and hands over"),
        )
    })
}

fn missing(controller: &str, sources: &[Source]) -> Vec<Problem> {
    let folder = format!("crates/{controller}/");
    let there: BTreeSet<_> = sources
        .iter()
        .filter(|source| source.path.starts_with(&folder))
        .filter_map(|source| step(&source.path))
        .collect();
    NEEDED
        .iter()
        .filter(|part| !there.contains(*part))
        .map(|part| {
            Problem::new(
                &format!("{folder}Cargo.toml"),
                1,
                format!("{controller} has no src/{part}.rs; all six are built alike, see docs/architecture.md"),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    /// All six with what they need and nothing else.
    fn whole() -> Vec<Source> {
        Controller::ALL
            .iter()
            .flat_map(|c| NEEDED.map(|part| format!("crates/{}/src/{part}.rs", c.name())))
            .map(|path| source(&path, "//! A.\n"))
            .collect()
    }

    #[test]
    fn six_controllers_with_the_same_parts_pass() {
        assert_eq!(check(&whole()), []);
    }

    #[test]
    fn a_part_of_another_name_or_a_missing_one_is_found() {
        let mut sources = whole();
        sources.push(source("crates/kite-vm/src/manager.rs", "//! A.\n"));
        assert_eq!(check(&sources)[0].file, "crates/kite-vm/src/manager.rs");
        sources.pop();
        sources.retain(|s| s.path != "crates/kite-user/src/reconcile.rs");
        assert!(check(&sources)[0].text.contains("src/reconcile.rs"));
    }

    #[test]
    fn a_part_may_have_a_folder_and_other_crates_are_free() {
        let mut sources = whole();
        sources.push(source("crates/kite-vm/src/plan/disk.rs", "//! A.\n"));
        sources.push(source("crates/kite-runtime/src/lease.rs", "//! A.\n"));
        assert_eq!(check(&sources), []);
    }

    #[test]
    fn a_main_that_does_more_than_hand_over_is_found() {
        let mut sources = whole();
        sources[0].text = "//! A.\n".repeat(31);
        assert_eq!(check(&sources)[0].line, 31);
    }
}
