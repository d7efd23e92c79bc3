//! Pictures and page of a made-up report: what is shown, what is left out, and that the same
//! report gives the same bytes.

use std::fs;

use super::example;
use super::*;
use crate::report::{Count, Measured};

fn text(report: &Report, name: &str) -> String {
    let files = files(report).unwrap();
    let file = files.into_iter().find(|file| file.name == name);
    file.unwrap_or_else(|| panic!("there is no {name}")).text
}

fn without(scenario: &str) -> Report {
    let mut report = example::report();
    report.results.retain(|m| m.scenario != scenario);
    report
}

fn names(report: &Report) -> Vec<String> {
    let files = files(report).unwrap();
    files.into_iter().map(|file| file.name).collect()
}

#[test]
fn a_whole_report_has_every_picture_and_a_page_that_shows_each() {
    // Given a report of a whole run,
    let report = example::report();
    // when it is drawn into a folder that is not there yet,
    let top = tempfile::tempdir().unwrap();
    let folder = top.path().join("benchmarks");
    let written = write(&report, &folder).unwrap();
    // then all files are there, and the page embeds every picture.
    let expected = [
        "ratios.svg",
        "time-to-running-100.svg",
        "time-to-running-1000.svg",
        "time-to-running-10000.svg",
        "time-to-disk-200.svg",
        "requests.svg",
        "memory.svg",
        "rest.svg",
        "README.md",
        "scale.md",
    ];
    assert_eq!(written, expected.map(|name| folder.join(name)));
    let page = fs::read_to_string(folder.join(PAGE)).unwrap();
    for picture in expected.iter().filter(|name| **name != PAGE) {
        assert!(page.contains(&format!("]({picture})")), "{picture}");
    }
}

#[test]
fn the_same_report_gives_the_same_bytes_also_after_it_was_a_file() {
    let report = example::report();
    let json = serde_json::to_string_pretty(&report).unwrap();
    let read: Report = serde_json::from_str(&json).unwrap();
    assert_eq!(files(&report).unwrap(), files(&read).unwrap());
}

#[test]
fn what_was_not_measured_has_no_picture_and_is_said() {
    for (scenario, picture) in [
        ("burst", "requests.svg"),
        ("rest", "rest.svg"),
        ("memory", "memory.svg"),
    ] {
        let report = without(scenario);
        assert!(!names(&report).contains(&picture.to_owned()), "{picture}");
        let page = text(&report, PAGE);
        assert!(!page.contains(picture), "{picture}");
        assert!(page.contains(&format!("(`{scenario}`) was not measured")));
    }
}

#[test]
fn an_empty_report_is_a_page_without_pictures() {
    let report = Report::default();
    assert_eq!(names(&report), [PAGE]);
    let page = text(&report, PAGE);
    assert_eq!(
        page.matches("was not measured").count(),
        scenarios::ALL.len()
    );
    assert_eq!(
        page.matches("| not measured |").count(),
        targets::ROWS.len()
    );
}

#[test]
fn axes_say_what_they_show_and_in_which_unit() {
    let report = example::report();
    for (picture, titles) in [
        (
            "time-to-running-1000.svg",
            ["seconds after its creation", "machines that run, %"],
        ),
        ("requests.svg", ["machines", "requests"]),
        ("memory.svg", ["machines", "resident memory, MiB"]),
        ("rest.svg", ["requests a minute", "kite-datavolume"]),
        (
            "ratios.svg",
            ["Kite / bare client, × (logarithmic)", "burst 1,000: p99"],
        ),
    ] {
        let svg = text(&report, picture);
        for title in titles {
            assert!(
                svg.contains(&format!("\n{title}\n</text>")),
                "{picture}: {title}"
            );
        }
    }
}

#[test]
fn every_figure_is_in_a_table_also_of_a_scenario_that_nobody_knows() {
    let page = text(&example::report(), PAGE);
    assert!(page.contains("## something new\n"));
    assert!(page.contains("| `kite` | of a kind | apples | 3 |"));
    assert!(page.contains("| `raw` | rate | creates/s | 412 | 412 | 412 |"));
}

#[test]
fn the_table_of_targets_tells_what_was_seen_and_whether_it_is_enough() {
    let page = text(&example::report(), PAGE);
    let line = |start: &str| {
        let found = page.lines().find(|line| line.starts_with(start));
        found
            .unwrap_or_else(|| panic!("no line {start}"))
            .to_owned()
    };
    let burst = line("| burst of 1,000:");
    assert!(burst.ends_with("5 rounds | aim |"), "{burst}");
    let memory = line("| resident memory, six processes, 10,000");
    assert!(memory.ends_with("| 160 MiB | must |"), "{memory}");
    let processor = line("| processor time for each create, six");
    assert!(
        processor.contains("| 3.1 ms in a burst of 10,000 | –"),
        "{processor}"
    );
    let restart = line("| restart, 10,000");
    assert!(
        restart.contains("| 0 writes, 0 lists, 8 watches,"),
        "{restart}"
    );
    assert!(restart.ends_with("| must |"), "{restart}");
}

#[test]
fn each_scenario_names_the_command_that_made_it() {
    let page = text(&example::report(), PAGE);
    assert!(page.contains("Scenario `noisy`, made by `cargo xtask bench noisy --example`."));
    assert!(page.contains("Scenario `rest`, made by `cargo xtask bench --example`."));
}

#[test]
fn a_counted_round_without_a_request_had_it_no_times() {
    // Given two rounds that were counted, of which only one had a request,
    let count = |verb: &str, count| Count {
        controller: "kite-vm".to_owned(),
        verb: verb.to_owned(),
        resource: "services".to_owned(),
        count,
    };
    let mut report = Report::default();
    for counts in [
        vec![count("create", 4), count("get", 1)],
        vec![count("get", 1)],
    ] {
        let mut measured = Measured::new("burst", "kite", 100);
        measured.counts = counts;
        report.results.push(measured);
    }
    // when they are told, then the other round is not left out of the range.
    let page = text(&report, PAGE);
    assert!(page.contains("| `kite` | kite-vm | create | services | 2 (0–4) |"));
    assert!(page.contains("| `kite` | kite-vm | get | services | 1 |"));
}

#[test]
fn a_ratio_is_of_two_times_of_the_same_round() {
    // Given two rounds of which the second was slower for both,
    let mut report = Report::default();
    for (round, who, time) in [
        (1, "kite", 1.0),
        (1, "bare", 1.0),
        (2, "kite", 9.0),
        (2, "bare", 6.0),
    ] {
        let mut measured =
            Measured::new("burst", who, 1_000).figure("time to all Running", "s", time);
        measured.round = round;
        report.results.push(measured);
    }
    // when the ratio is taken, then it is never that of one round to another.
    let ratio = ratios::rows(&report).remove(0).ratio;
    assert_eq!(ratio.shown(), "1.25 (1–1.5)");
}
