//! What each step cost: its time, and the requests of each controller. Pure.

use std::time::Duration;

use kite_api::labels::Controller;
use kite_testkit::audit::Request;

use crate::up::Table;

/// What a step of the story is known by in the closing table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Title {
    pub(super) text: &'static str,
    /// The most requests that the step may need, where a limit is set for it.
    pub(super) limit: Option<usize>,
}

/// The last row.
const ALL: Title = Title {
    text: "together",
    limit: None,
};

/// One step as it was.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    title: Title,
    took: Duration,
    by_controller: [usize; Controller::ALL.len()],
    events: usize,
    standing: usize,
}

impl Entry {
    /// Counts what Kite asked during a step. Leases and watches go on whether
    /// anything happens or not, and events are for people: both stand apart.
    pub(super) fn count(title: Title, took: Duration, requests: &[Request]) -> Self {
        let mut entry = Self {
            title,
            took,
            by_controller: [0; Controller::ALL.len()],
            events: 0,
            standing: 0,
        };
        for request in requests {
            let who = Controller::ALL
                .iter()
                .position(|controller| request.is_by(controller.name()));
            let Some(who) = who else { continue };
            if request.is_lease() || request.is_watch() {
                entry.standing += 1;
            } else if request.is_event() {
                entry.events += 1;
            } else {
                entry.by_controller[who] += 1;
            }
        }
        entry
    }

    /// All steps as one.
    fn together(entries: &[Self]) -> Self {
        let mut all = Self::count(ALL, Duration::ZERO, &[]);
        for entry in entries {
            all.took += entry.took;
            all.events += entry.events;
            all.standing += entry.standing;
            for (sum, count) in all.by_controller.iter_mut().zip(entry.by_controller) {
                *sum += count;
            }
        }
        all
    }

    fn cells(&self) -> Vec<String> {
        let number = |count: usize| match count {
            0 => "–".to_owned(),
            count => count.to_string(),
        };
        let sum: usize = self.by_controller.iter().sum();
        let mut cells = vec![
            self.title.text.to_owned(),
            format!("{:.1} s", self.took.as_secs_f64()),
        ];
        cells.extend(self.by_controller.iter().map(|count| number(*count)));
        cells.push(sum.to_string());
        cells.push(number(self.title.limit.unwrap_or_default()));
        cells.push(number(self.events));
        cells.push(number(self.standing));
        cells
    }
}

/// Whether something is done that is no lease, no watch and not asked by others.
pub(super) fn is_work(request: &Request) -> bool {
    let by_kite = Controller::ALL.iter().any(|who| request.is_by(who.name()));
    by_kite && !request.is_lease() && !request.is_watch()
}

/// All steps below each other.
pub(super) fn table(entries: &[Entry]) -> Table {
    let short = |controller: &Controller| controller.name().trim_start_matches("kite-");
    let mut headings = vec!["step", "time"];
    headings.extend(Controller::ALL.iter().map(short));
    headings.extend(["sum", "limit", "events", "leases, watches"]);
    let mut table = Table::new(headings);
    for entry in entries {
        table.row(entry.cells());
    }
    table.row(Entry::together(entries).cells());
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(account: &str, verb: &str, resource: &str) -> Request {
        Request {
            user: format!("system:serviceaccount:kite-system:{account}"),
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            code: 200,
            ..Request::default()
        }
    }

    #[test]
    fn requests_are_counted_by_controller_with_leases_watches_and_events_apart() {
        let requests = [
            request("kite-vm", "create", "services"),
            request("kite-vm", "patch", "kite.dev/kitevirtualmachines"),
            request("kite-vm", "update", "coordination.k8s.io/leases"),
            request("kite-vm-status", "watch", "kubevirt.io/virtualmachines"),
            request("kite-user", "create", "events.k8s.io/events"),
            request("kubevirt-stand-in", "patch", "kubevirt.io/virtualmachines"),
        ];
        let title = Title {
            text: "a step",
            limit: Some(23),
        };
        let entry = Entry::count(title, Duration::from_millis(1500), &requests);
        assert_eq!(
            entry.cells(),
            [
                "a step", "1.5 s", "–", "–", "2", "–", "–", "–", "2", "23", "1", "2"
            ]
        );
        let twice = Entry::together(&[entry.clone(), entry]);
        assert_eq!(
            twice.cells(),
            [
                "together", "3.0 s", "–", "–", "4", "–", "–", "–", "4", "–", "2", "4"
            ]
        );
        let work: Vec<_> = requests.iter().map(is_work).collect();
        assert_eq!(work, [true, true, false, false, true, false]);
    }
}
