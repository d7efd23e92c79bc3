//! Lives without a crash, and lives that all have one.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::fault_layer::{Act, Match, Rule};
use kite_testkit::snapshot::assert_same;
use kite_testkit::wait::eventually;

use crate::lives::{Kind, Lives, Step, is_record};
use crate::state::{self, Made, State};
use crate::world::World;

/// Longer than many lives side by side take for one step.
const LIMIT: Duration = Duration::from_secs(150);

/// Fewest and most writes of a process in one step of one life.
type Writes = BTreeMap<(&'static str, Step), (usize, usize)>;

/// What lives are like when nothing crashes.
pub(crate) struct Calm {
    ends: BTreeMap<Step, State>,
    made: BTreeMap<Step, Made>,
    writes: Writes,
}

/// How many crash points of a process were tried in one step.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    pub(crate) before: usize,
    pub(crate) after: usize,
    /// Points that a life did not come to, since it took fewer writes.
    pub(crate) missed: usize,
    /// Most writes in one life without a crash.
    pub(crate) most: usize,
    /// What the server answered to writes that came late.
    pub(crate) late: BTreeMap<u16, usize>,
}

impl Tried {
    /// Counts what was tried, and (CR4) has what the dead process had sent arrive when its
    /// successor is long done.
    async fn add(&mut self, world: &World, points: &[Point]) {
        for point in points {
            let hit = point.rule.hits() > 0;
            let count = match (hit, point.before) {
                (false, _) => &mut self.missed,
                (true, true) => &mut self.before,
                (true, false) => &mut self.after,
            };
            *count += 1;
        }
        for point in points.iter().filter(|p| p.before) {
            for code in point.rule.deliver().await {
                *self.late.entry(code.unwrap_or_default()).or_default() += 1;
            }
        }
        if !points.is_empty() {
            world.quiet().await;
        }
    }
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{} ({})", self.before, self.after, self.most)
    }
}

impl fmt::Display for Calm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((process, step), (least, most)) in self.writes.iter().filter(|(_, n)| n.1 > 0) {
            writeln!(f, "  {process:16} {step:?}: {least} to {most} writes")?;
        }
        Ok(())
    }
}

impl Calm {
    /// Lives a few lives, and asserts that they are alike.
    pub(crate) async fn of(world: &World, lives: &Lives) -> Self {
        lives.prepare(world).await;
        world.quiet().await;
        let mut calm = Self {
            ends: BTreeMap::new(),
            made: BTreeMap::new(),
            writes: Writes::new(),
        };
        for step in Step::of(lives.kind) {
            let audit = world.cluster.control_plane.audit().unwrap();
            let mark = audit.settled_mark(&world.client).await.unwrap();
            let before: Vec<_> = CONTROLLERS.map(|p| world.layers[p].writes().len()).into();
            lives.ask(world, step).await;
            lives.done(world, step).await;
            world.quiet().await;
            for (process, before) in CONTROLLERS.into_iter().zip(before) {
                let writes = &world.layers[process].writes()[before..];
                let records = writes.iter().filter(|w| is_record(&w.asked)).count();
                let of_life = |name: &String| {
                    let own = writes.iter().filter(|w| lives.is_about(&w.asked, name));
                    own.count() + records / lives.names.len()
                };
                let counts: Vec<_> = lives.names.iter().map(of_life).collect();
                let range = (*counts.iter().min().unwrap(), *counts.iter().max().unwrap());
                calm.writes.insert((process, step), range);
            }
            calm.keep(world, lives, step, mark).await;
        }
        calm
    }

    async fn keep(
        &mut self,
        world: &World,
        lives: &Lives,
        step: Step,
        mark: kite_testkit::audit::Mark,
    ) {
        let states = state::of(world, lives).await;
        let mut made = state::made(world, lives, mark).await;
        let first = &lives.names[0];
        let made_first = made.remove(first).unwrap_or_default();
        for name in &lives.names[1..] {
            let what = format!("{step:?} of {first} and {name}, without a crash");
            assert_same(&what, &states[first], &states[name]);
            assert_eq!(made.remove(name).unwrap_or_default(), made_first, "{what}");
        }
        self.ends.insert(step, states[first].clone());
        self.made.insert(step, made_first);
    }

    fn most(&self, process: &'static str, step: Step) -> usize {
        self.writes[&(process, step)].1
    }
}

/// A life that comes to a crash point.
struct Point {
    life: String,
    rule: Rule,
    k: usize,
    before: bool,
}

/// Lives as many lives as a process has crash points, and has it crash at all of them in each step.
pub(crate) async fn crash_everywhere(
    world: &World,
    kind: Kind,
    process: &'static str,
    calm: &Calm,
) -> Vec<(Step, Tried)> {
    let steps = Step::of(kind);
    let most = steps.iter().map(|s| calm.most(process, *s)).max();
    let most = most.unwrap_or_default();
    if most == 0 {
        return Vec::new();
    }
    let batch = process.trim_start_matches("kite-");
    let lives = Lives::new(kind, batch, 2 * most);
    lives.prepare(world).await;
    world.quiet().await;
    let mut all = Vec::new();
    for step in steps {
        let most = calm.most(process, step);
        let ks: Vec<_> = (1..=most).flat_map(|k| [(k, true), (k, false)]).collect();
        // It decides about one deletion at a time, so two lives cannot wait in theirs.
        let alone = process == "kite-namespace" && most > 0;
        let at_once = if alone { 1 } else { lives.names.len() };
        let mut tried = Tried {
            most,
            ..Tried::default()
        };
        for (i, names) in lives.names.chunks(at_once).enumerate() {
            let ks = ks.get(i * at_once..).unwrap_or_default();
            let group = lives.only(names);
            let what = format!("{kind:?} {step:?} with crashes of {process}");
            let points = points(world, &group, process, ks);
            crash_once(world, &group, (process, step), &points, calm, &what).await;
            tried.add(world, &points).await;
            all_end_alike(world, &group, &calm.ends[&step], &points, &what).await;
        }
        println!("  {kind:?} {step:?} with crashes of {process}: {tried:?}");
        all.push((step, tried));
    }
    all
}

/// One step in lives that all crash at once, each at its point.
async fn crash_once(
    world: &World,
    lives: &Lives,
    (process, step): (&'static str, Step),
    points: &[Point],
    calm: &Calm,
    what: &str,
) {
    let end = &calm.ends[&step];
    let audit = world.cluster.control_plane.audit().unwrap();
    let mark = audit.settled_mark(&world.client).await.unwrap();
    lives.ask(world, step).await;
    come_to_their_points(world, lives, points, end, what).await;
    for point in points {
        point.rule.end();
    }
    if !points.is_empty() {
        world.restart(process).await;
    }
    all_end_alike(world, lives, end, points, what).await;
    let made = state::made(world, lives, mark).await;
    for name in &lives.names {
        let own = made.get(name).cloned().unwrap_or_default();
        assert_eq!(own, calm.made[&step], "{what}, {name} {}", at(points, name));
    }
    if step != Step::Delete {
        state::keys_belong_together(world, lives).await;
    }
}

/// A point for each life: before write k or after it was applied.
fn points(world: &World, lives: &Lives, process: &str, ks: &[(usize, bool)]) -> Vec<Point> {
    let of_life = |(life, &(k, before)): (&String, &(usize, bool))| {
        let (own, name) = (lives.only(&lives.names), life.clone());
        let writes = Match::write(k).when(move |asked| own.is_about(asked, &name));
        let act = if before {
            Act::HoldBefore
        } else {
            Act::HoldApplied
        };
        Point {
            life: life.clone(),
            rule: world.layers[process].on(writes).then(act),
            k,
            before,
        }
    };
    lives.names.iter().zip(ks).map(of_life).collect()
}

/// Waits until every life waits at its point, or is at its end without having come to it.
async fn come_to_their_points(
    world: &World,
    lives: &Lives,
    points: &[Point],
    end: &State,
    what: &str,
) {
    let there = async || {
        if points.iter().all(|p| p.rule.hits() > 0) {
            return Some(());
        }
        let states = state::of(world, lives).await;
        let is_there = |p: &Point| p.rule.hits() > 0 || states[&p.life] == *end;
        points.iter().all(is_there).then_some(())
    };
    let came = eventually("the lives to come to their crash points", LIMIT, there).await;
    if came.is_err() {
        let states = state::of(world, lives).await;
        let is_lost = |p: &&Point| p.rule.hits() == 0 && states[&p.life] != *end;
        if let Some(lost) = points.iter().find(is_lost) {
            let what = format!("{what}: {} never came to write {}", lost.life, lost.k);
            assert_same(&what, end, &states[&lost.life]);
        }
    }
}

fn at(points: &[Point], name: &str) -> String {
    let point = points.iter().find(|p| p.life == name);
    point.map_or_else(
        || "without a point of its own".to_owned(),
        |p| {
            let when = if p.before { "before" } else { "after" };
            let hit = if p.rule.hits() > 0 {
                ""
            } else {
                " (not reached)"
            };
            format!("crashed {when} write {}{hit}", p.k)
        },
    )
}

async fn all_end_alike(world: &World, lives: &Lives, end: &State, points: &[Point], what: &str) {
    let alike = async || {
        let states = state::of(world, lives).await;
        states.values().all(|state| state == end).then_some(())
    };
    if eventually("equal ends", LIMIT, alike).await.is_ok() {
        return;
    }
    for (name, state) in state::of(world, lives).await {
        let at = at(points, &name);
        assert_same(&format!("{what}, {name} {at}"), end, &state);
    }
}
