//! The page names every reason, and each helps.

use std::collections::BTreeSet;

use super::*;

fn reasons() -> impl Iterator<Item = (Controller, &'static Reason)> {
    let of = |controller| reasons::of(controller).iter().map(move |r| (controller, r));
    Controller::ALL.into_iter().flat_map(of)
}

fn all_said() -> Vec<Said> {
    said::said(&workspace::sources().unwrap())
}

#[test]
fn every_word_that_a_controller_says_is_on_the_page_or_known_to_be_no_reason() {
    let forgotten: BTreeSet<String> = all_said()
        .into_iter()
        .filter(|s| !reasons().any(|(_, r)| r.word == s.word) && !words::is_no_reason(&s.word))
        .map(|s| format!("{} in {}", s.word, s.by))
        .collect();
    assert!(
        forgotten.is_empty(),
        "put these into messages/reasons.rs, or into messages/words.rs if they are no reasons: {forgotten:#?}"
    );
}

#[test]
fn no_reason_is_on_the_page_that_nobody_gives() {
    let said = all_said();
    let dead: Vec<_> = reasons()
        .filter(|(controller, reason)| {
            let by = [controller.name(), "kite-api"];
            !said
                .iter()
                .any(|s| s.word == reason.word && by.contains(&s.by.as_str()))
        })
        .map(|(controller, reason)| format!("{} of {}", reason.word, controller.name()))
        .collect();
    assert!(dead.is_empty(), "{dead:?}");
}

#[test]
fn every_reason_has_a_message_a_place_and_a_remedy() {
    let said = all_said();
    for (controller, reason) in reasons() {
        let Reason {
            word,
            place,
            remedy,
            ..
        } = reason;
        assert!(
            !messages(reason, controller, &said).is_empty(),
            "{word} means nothing"
        );
        assert!(!place.is_empty() && !place.ends_with('.'), "{word}");
        assert!(
            remedy.ends_with('.') || remedy.ends_with('`'),
            "{word}: {remedy}"
        );
    }
    for controller in Controller::ALL {
        let list = reasons::of(controller);
        assert!(
            list.is_sorted_by_key(|r| r.word),
            "sort the reasons of {}",
            controller.name()
        );
    }
}

#[test]
fn every_sentence_says_what_is_and_ends_without_a_stop() {
    for Said { word, text, by } in all_said() {
        let first = text.split(' ').next().unwrap_or_default();
        let small = !text.starts_with(char::is_uppercase);
        assert!(small || words::is_no_reason(first), "{by} {word}: {text}");
        assert!(
            !text.ends_with('.') && !text.contains("  "),
            "{by} {word}: {text}"
        );
    }
}

#[test]
fn what_the_server_refuses_is_there_with_its_field() {
    let page = file().unwrap().text;
    assert!(page.contains("| KiteVirtualMachine | `spec` | "), "{page}");
    let rows = page.lines().filter(|l| l.starts_with("| Kite"));
    for row in rows {
        let message = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        assert!(message.len() > 10, "says nothing: {row}");
    }
}
