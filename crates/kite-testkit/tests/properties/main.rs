//! What holds for any specification, asked of a real API server with the webhooks
//! of the stand-ins, by dry runs: what renders is accepted as it is, and the
//! schema and Kite's own validation draw the same line.
//!
//! The samples are the same in every run.

mod bench;
mod bounds;
mod specs;
mod user_bounds;

use std::collections::{BTreeMap, BTreeSet};

use bench::Bench;
use kite_api::{KiteUser, KiteVirtualMachine};
use kite_render::validate::{Problem, Problems, ValidMachine, ValidUser};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::Value;

/// How many whole lives' worth of objects are sent to the server.
const RENDERED: usize = 60;
/// How many specifications near the bounds.
const NEAR_BOUNDS: usize = 400;

// V-16, V-17, C-8, C-19, F-18, F-23, SE5, IN4: whatever is valid renders to objects that the server takes and gives back as they were sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_machine_is_valid_renders_to_objects_that_the_server_accepts_unchanged() {
    let bench = Bench::shared().await;
    let platform = specs::platform();
    let mut sent = BTreeMap::<String, usize>::new();
    for raw in sample(&specs::machine(), RENDERED) {
        bench.accepts(&raw).await;
        let machine: KiteVirtualMachine = serde_json::from_value(raw.clone()).unwrap();
        let valid =
            ValidMachine::parse(&machine, &platform).unwrap_or_else(|e| panic!("{raw}: {e}"));
        for child in specs::children_of_machine(&valid, &platform) {
            bench.accepts_unchanged(&child).await;
            *sent
                .entry(child["kind"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
    }
    println!("accepted as sent: {sent:?}");
    assert_eq!(sent.len(), 6, "a kind is missing");
}

// U-4, U-5, U-6, C-19
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_user_is_valid_renders_to_objects_that_the_server_accepts_unchanged() {
    let bench = Bench::shared().await;
    let platform = specs::platform();
    let mut sent = BTreeMap::<String, usize>::new();
    for raw in sample(&specs::user(), RENDERED) {
        bench.accepts(&raw).await;
        let user: KiteUser = serde_json::from_value(raw.clone()).unwrap();
        let valid = ValidUser::parse(&user, &platform).unwrap_or_else(|e| panic!("{raw}: {e}"));
        for child in specs::children_of_user(&valid, &platform) {
            bench.accepts_unchanged(&child).await;
            *sent
                .entry(child["kind"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
    }
    println!("accepted as sent: {sent:?}");
    assert_eq!(sent.len(), 5, "a kind is missing");
}

// C-17, IN1 to IN5, IN7, SE5 to SE7, SE10: near every bound the schema and Kite agree, and each refusal has words.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn near_the_bounds_of_a_machine_the_schema_and_the_controller_draw_one_line() {
    let platform = specs::platform();
    let judge = |raw: &Value| {
        let machine: KiteVirtualMachine = serde_json::from_value(raw.clone()).ok()?;
        let valid = ValidMachine::parse(&machine, &platform);
        Some(valid.map(|valid| specs::children_of_machine(&valid, &platform)))
    };
    agree(&bounds::machine(), &bounds::BEYOND_THE_SCHEMA, judge).await;
}

// C-17, IN7, U-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn near_the_bounds_of_a_user_the_schema_and_the_controller_draw_one_line() {
    let platform = specs::platform();
    let judge = |raw: &Value| {
        let user: KiteUser = serde_json::from_value(raw.clone()).ok()?;
        let valid = ValidUser::parse(&user, &platform);
        Some(valid.map(|valid| specs::children_of_user(&valid, &platform)))
    };
    agree(&user_bounds::user(), &user_bounds::BEYOND_THE_SCHEMA, judge).await;
}

/// What the server accepts the controller accepts, save for what stands in `beyond`, which no
/// schema can know, and what Kite renders for it the server accepts. What the server refuses the controller refuses too, were it an older object,
/// save for what [`bounds::FORM`] lists.
async fn agree(
    strategy: &impl Strategy<Value = Value>,
    beyond: &[(&str, &str)],
    judge: impl Fn(&Value) -> Option<Result<Vec<Value>, Problems>>,
) {
    let bench = Bench::shared().await;
    let (mut both, mut neither, mut one) = (0, 0, 0);
    let mut wrong = BTreeSet::new();
    for raw in sample(strategy, NEAR_BOUNDS) {
        let what = format!("{} {}", raw["metadata"]["name"], raw["spec"]);
        match (bench.dry_run(&raw).await, judge(&raw)) {
            (Ok(_), Some(Ok(children))) => {
                both += 1;
                // Which further keys a quota may have only the server knows; kite-user passes on its words.
                if raw.pointer("/spec/quota/hard").is_none() {
                    bench.accepts_in_some_namespace(children).await;
                }
            }
            (Err(_), Some(Err(_)) | None) => neither += 1,
            (Ok(_), None) => {
                wrong.insert(format!("only the server can read {what}"));
            }
            (Ok(_), Some(Err(problems))) => {
                one += 1;
                let known = |p: &Problem| {
                    let (field, words) = (p.field.split('[').next().unwrap(), p.wrong.to_string());
                    beyond.iter().any(|(f, w)| *f == field && words.contains(w))
                };
                if !problems.all().iter().all(known) {
                    wrong.insert(format!("only Kite refuses {what}: {problems}"));
                }
            }
            (Err(said), Some(Ok(_))) => {
                one += 1;
                if !bounds::FORM.iter().any(|words| said.contains(words)) {
                    wrong.insert(format!("only the server refuses {what}: {said}"));
                }
            }
        }
    }
    println!("both accept {both}, both refuse {neither}, one refuses {one}");
    assert!(wrong.is_empty(), "{}: {wrong:#?}", wrong.len());
    assert!(both > 20 && neither > 100, "the sample shows nothing");
}

/// Some values of a strategy, always the same ones.
fn sample<S: Strategy>(strategy: &S, count: usize) -> Vec<S::Value> {
    let mut runner = TestRunner::deterministic();
    let mut draw = || strategy.new_tree(&mut runner).unwrap().current();
    (0..count).map(|_| draw()).collect()
}
