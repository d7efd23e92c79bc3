//! Compares what a command said with what the page shows below it.
//!
//! `…` stands for anything within a line; a line of its own for any lines. Columns
//! may be wider or narrower. Everything else has to be there, in order.

/// Stands for whatever differs from run to run.
const ANYTHING: &str = "…";

/// Whether the whole output is as shown.
pub(crate) fn as_shown(shown: &[String], said: &str) -> bool {
    let shown: Vec<String> = shown.iter().map(|line| one_spaced(line)).collect();
    let said: Vec<String> = said.lines().map(one_spaced).collect();
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    lines(without_end(&shown), without_end(&said))
}

/// Whether the page says that the command fails.
pub(crate) fn fails(shown: &[String]) -> bool {
    shown.iter().any(|line| {
        let line = line.to_lowercase();
        line.starts_with("error:") || line.starts_with("error from server")
    })
}

fn lines(shown: &[&str], said: &[&str]) -> bool {
    match (shown, said) {
        ([], []) => true,
        ([first, rest @ ..], _) if *first == ANYTHING => {
            (0..=said.len()).any(|skipped| lines(rest, &said[skipped..]))
        }
        ([first, shown @ ..], [line, said @ ..]) => matches(first, line) && lines(shown, said),
        _ => false,
    }
}

fn matches(pattern: &str, line: &str) -> bool {
    let Some((before, after)) = pattern.split_once(ANYTHING) else {
        return pattern == line;
    };
    let Some(rest) = line.strip_prefix(before) else {
        return false;
    };
    let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    ends.any(|at| matches(after, &rest[at..]))
}

fn one_spaced(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn without_end<'a>(lines: &'a [&'a str]) -> &'a [&'a str] {
    let end = lines.iter().rposition(|line| !line.is_empty());
    &lines[..end.map_or(0, |end| end + 1)]
}

#[test]
fn what_is_shown_stands_for_what_is_said() {
    let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let said = "NAME    READY   AGE\nkite-vm 1/1     17s\nkite-user 1/1  3m\n\n";
    for good in [
        "NAME READY AGE\nkite-vm 1/1 …\nkite-user 1/1 …",
        "…",
        "NAME …\n…",
        "…\nkite-user 1/1 …",
        "…\n…-vm 1/1 …s\n…",
    ] {
        assert!(as_shown(&shown(good), said), "{good}");
    }
    for bad in [
        "NAME READY AGE",
        "kite-vm 1/1 …\n…",
        "NAME READY AGE\nkite-vm 0/1 …\n…",
        "…\nkite-vm 1/1 …",
    ] {
        assert!(!as_shown(&shown(bad), said), "{bad}");
    }
    assert!(fails(&shown("Error: INSTALLATION FAILED: …")));
    assert!(!fails(&shown("STATUS: deployed")));
}
