//! Requests against the number of objects, as `a + b·N`: counted by controller, verb and
//! resource, and fitted over several sizes.
//!
//! It is arithmetic over what the audit log says. Which `a` and `b` are right is the caller's
//! to say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::audit::Request;

/// Who asked what: one row of a table of requests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// The ServiceAccount's name, or the user's where it is none.
    pub controller: String,
    /// The verb as the audit log has it; an apply that made its object is `create`.
    pub verb: String,
    /// The resource with its group and subresource.
    pub resource: String,
}

impl Asked {
    /// What a request asked.
    pub fn of(request: &Request) -> Self {
        let user = request.user.rsplit(':').next().unwrap_or_default();
        Self {
            controller: user.to_owned(),
            verb: request.verb.clone(),
            resource: request.target(),
        }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.controller, self.verb, self.resource)
    }
}

/// How often each was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    rows: BTreeMap<Asked, usize>,
}

impl Counts {
    /// Counts requests, watches among them where they are given.
    pub fn of<'a>(requests: impl IntoIterator<Item = &'a Request>) -> Self {
        let mut rows = BTreeMap::new();
        for request in requests {
            *rows.entry(Asked::of(request)).or_default() += 1;
        }
        Self { rows }
    }

    /// The rows in order.
    pub fn rows(&self) -> impl Iterator<Item = (&Asked, usize)> {
        self.rows.iter().map(|(asked, count)| (asked, *count))
    }

    /// How often one thing was asked.
    pub fn get(&self, asked: &Asked) -> usize {
        self.rows.get(asked).copied().unwrap_or_default()
    }

    /// Everything that one controller asked.
    pub fn by(&self, controller: &str) -> usize {
        let own = self.rows().filter(|row| row.0.controller == controller);
        own.map(|row| row.1).sum()
    }

    /// All together.
    pub fn total(&self) -> usize {
        self.rows.values().sum()
    }
}

/// The line `fixed + each · N`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Line {
    /// What does not depend on the number of objects.
    pub fixed: f64,
    /// What each object adds.
    pub each: f64,
}

impl Line {
    /// The line that lies nearest to the points (number of objects, requests) by least squares;
    /// through two points it goes exactly. With all points at one size everything is `each`.
    pub fn through(points: &[(usize, usize)]) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "no run sends 2^52 requests")]
        let points: Vec<(f64, f64)> = points.iter().map(|&(n, y)| (n as f64, y as f64)).collect();
        #[expect(clippy::cast_precision_loss, reason = "a run has a handful of sizes")]
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count.max(1.0);
        let (n, y) = (mean(|p| p.0), mean(|p| p.1));
        let spread: f64 = points.iter().map(|p| (p.0 - n).powi(2)).sum();
        if spread == 0.0 {
            let each = if n == 0.0 { 0.0 } else { y / n };
            return Self { fixed: 0.0, each };
        }
        let common: f64 = points.iter().map(|p| (p.0 - n) * (p.1 - y)).sum();
        let each = common / spread;
        Self {
            fixed: y - each * n,
            each,
        }
    }

    /// The lines of all that was asked at several sizes.
    pub fn of_rows(sizes: &[(usize, Counts)]) -> BTreeMap<Asked, Self> {
        let asked: BTreeSet<&Asked> = sizes.iter().flat_map(|(_, c)| c.rows.keys()).collect();
        let line = |asked: &Asked| {
            let points: Vec<_> = sizes.iter().map(|(n, c)| (*n, c.get(asked))).collect();
            Self::through(&points)
        };
        asked
            .into_iter()
            .map(|asked| (asked.clone(), line(asked)))
            .collect()
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounding must not leave a minus before a zero.
        let tidy = |x: f64| (x * 100.0).round() / 100.0 + 0.0;
        write!(f, "{} + {}·N", tidy(self.fixed), tidy(self.each))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(user: &str, verb: &str, subresource: &str) -> Request {
        Request {
            user: user.to_owned(),
            verb: verb.to_owned(),
            resource: "kite.dev/kitevirtualmachines".to_owned(),
            subresource: subresource.to_owned(),
            code: 200,
            ..Request::default()
        }
    }

    #[test]
    fn requests_are_grouped_by_who_asked_what() {
        let vm = "system:serviceaccount:kite-system:kite-vm";
        let requests = [
            request(vm, "patch", "status"),
            request(vm, "patch", ""),
            request(vm, "patch", "status"),
            request("kite-admin", "get", ""),
        ];
        let counts = Counts::of(&requests);
        assert_eq!((counts.total(), counts.by("kite-vm")), (4, 3));
        let status = Asked {
            controller: "kite-vm".to_owned(),
            verb: "patch".to_owned(),
            resource: "kite.dev/kitevirtualmachines/status".to_owned(),
        };
        assert_eq!(counts.get(&status), 2);
    }

    #[test]
    fn two_sizes_give_the_line_and_more_give_the_nearest() {
        let two = Line::through(&[(4, 31), (16, 115)]);
        assert_eq!(two.to_string(), "3 + 7·N");
        let three = Line::through(&[(0, 0), (10, 21), (20, 39)]);
        assert_eq!(three.to_string(), "0.5 + 1.95·N");
        assert_eq!(Line::through(&[(4, 8), (4, 8)]).to_string(), "0 + 2·N");
        assert_eq!(Line::through(&[]).to_string(), "0 + 0·N");
    }

    #[test]
    fn what_is_asked_at_one_size_only_has_a_line_too() {
        let counts = Counts::of(&[request("a", "get", "")]);
        let lines = Line::of_rows(&[(1, Counts::default()), (2, counts)]);
        let lines: Vec<_> = lines.iter().map(|(a, l)| format!("{a}: {l}")).collect();
        assert_eq!(lines, ["a get kite.dev/kitevirtualmachines: -1 + 1·N"]);
    }
}
