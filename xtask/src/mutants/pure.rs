//! Which files decide without asking a cluster, and which tests do without one.
//!
//! Both are found, not listed, so that a new file or test takes part by being there.

use crate::tidy::PURE_STEPS;
use crate::workspace::Source;

/// What a test needs that starts a cluster.
const TESTKIT: &str = "kite_testkit";

/// The files of a crate whose changes tests should notice.
pub(super) fn files<'a>(name: &str, sources: &'a [Source]) -> Vec<&'a Source> {
    let folder = format!("crates/{name}/src/");
    sources
        .iter()
        .filter(|source| {
            source.path.strip_prefix(&folder).is_some_and(|rest| {
                let part = rest.split('/').next().unwrap_or_default();
                let step = part.strip_suffix(".rs").unwrap_or(part);
                name == "kite-render" || PURE_STEPS.contains(&step)
            })
        })
        .collect()
}

/// The arguments of `cargo test` that name a crate's tests without a cluster.
pub(super) fn tests(name: &str, sources: &[Source]) -> Vec<String> {
    let folder = format!("crates/{name}/tests/");
    let own: Vec<_> = sources
        .iter()
        .filter_map(|source| Some((source.path.strip_prefix(&folder)?, source.text.as_str())))
        .collect();
    let mut arguments = vec!["--lib".to_owned()];
    for (path, _) in &own {
        let target = match path.split_once('/') {
            None => path.strip_suffix(".rs"),
            Some((folder, "main.rs")) => Some(folder),
            Some(_) => None,
        };
        if let Some(target) = target.filter(|_| !needs_cluster(path, &own)) {
            arguments.push(format!("--test={target}"));
        }
    }
    arguments
}

/// Whether a file, or one that it declares as its module, uses the test kit.
fn needs_cluster(path: &str, own: &[(&str, &str)]) -> bool {
    let Some((_, text)) = own.iter().find(|(other, _)| *other == path) else {
        return false;
    };
    if text.contains(TESTKIT) {
        return true;
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let modules = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("mod ")?.strip_suffix(';'));
    modules.into_iter().any(|module| {
        let at = |rest: &str| {
            let path = [folder, rest].join("/");
            needs_cluster(path.trim_start_matches('/'), own)
        };
        at(&format!("{module}.rs")) || at(&format!("{module}/mod.rs"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> Vec<Source> {
        files
            .iter()
            .map(|(path, text)| Source {
                path: format!("crates/{path}"),
                text: (*text).to_owned(),
            })
            .collect()
    }

    #[test]
    fn the_steps_that_decide_are_changed_and_of_rendering_everything() {
        let sources = sources(&[
            ("kite-vm/src/plan.rs", ""),
            ("kite-vm/src/status/table.rs", ""),
            ("kite-vm/src/apply/plan.rs", ""),
            ("kite-vm/tests/status.rs", ""),
            ("kite-render/src/hash.rs", ""),
        ]);
        let paths = |name| -> Vec<_> {
            let files = files(name, &sources);
            files.iter().map(|file| file.path.as_str()).collect()
        };
        assert_eq!(
            paths("kite-vm"),
            [
                "crates/kite-vm/src/plan.rs",
                "crates/kite-vm/src/status/table.rs"
            ]
        );
        assert_eq!(paths("kite-render"), ["crates/kite-render/src/hash.rs"]);
    }

    #[test]
    fn a_test_that_starts_a_cluster_itself_or_through_a_module_is_left_out() {
        let sources = sources(&[
            ("kite-vm/tests/table.rs", "mod seen;\n"),
            ("kite-vm/tests/seen/mod.rs", "use kite_vm::plan;\n"),
            ("kite-vm/tests/life.rs", "mod common;\n"),
            (
                "kite-vm/tests/common/mod.rs",
                "use kite_testkit::Cluster;\n",
            ),
            ("kite-vm/tests/told/main.rs", "mod clock;\n"),
            ("kite-vm/tests/told/clock.rs", ""),
            ("kite-vm/tests/disks/main.rs", "mod growth;\n"),
            (
                "kite-vm/tests/disks/growth.rs",
                "use kite_testkit::Cluster;\n",
            ),
            ("kite-user/tests/other.rs", ""),
        ]);
        assert_eq!(
            tests("kite-vm", &sources),
            ["--lib", "--test=table", "--test=told"]
        );
    }
}
