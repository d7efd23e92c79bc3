//! The command line of `up`, and how a speed becomes flags of Kite's processes.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use kite_api::labels::Controller;

use super::build::Profile;

/// How long what is likely to pass is waited out at least: KubeVirt can be played
/// faster, and the API server answers no sooner for it.
const LEAST_HOLD: Duration = Duration::from_millis(500);

/// The times of Kite's processes that follow the pace of KubeVirt and CDI, as
/// their flags have them by default, and the least they may become: a controller
/// that mirrors every ten seconds has to mirror every second where a clone takes
/// a tenth of its time.
const PACED: [(Controller, &str, Duration, Duration); 4] = [
    (
        Controller::DataVolume,
        "--tick-interval",
        Duration::from_secs(10),
        Duration::ZERO,
    ),
    (
        Controller::DataVolume,
        "--error-hold",
        Duration::from_secs(10),
        LEAST_HOLD,
    ),
    (
        Controller::VmStatus,
        "--error-hold",
        Duration::from_secs(10),
        LEAST_HOLD,
    ),
    (
        Controller::VmStatus,
        "--settle",
        Duration::from_secs(2),
        LEAST_HOLD,
    ),
];

/// Beyond this, times become shorter than a request takes.
const FASTEST: f64 = 1000.0;

/// What `cargo xtask up` can be told.
#[derive(Args, Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of its own on the command line"
)]
pub(crate) struct UpOptions {
    /// Return once the cluster is ready; `cargo xtask down` ends it.
    #[arg(long)]
    pub(crate) detach: bool,
    /// Controllers that are not started, such as kite-service.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = controller)]
    pub(crate) without: Vec<Controller>,
    /// Leave KubeVirt and CDI to nobody: their kinds are there, and nothing acts on them.
    #[arg(long)]
    pub(crate) no_stand_ins: bool,
    /// How much faster than life KubeVirt and CDI are played; Kite's intervals follow.
    #[arg(long, value_name = "N", default_value_t = Speed::default())]
    pub(crate) speed: Speed,
    /// Build Kite as it is shipped: smaller and faster, and it takes minutes.
    #[arg(long)]
    pub(crate) release: bool,
    /// Set by --detach for the process that keeps the cluster.
    #[arg(long, hide = true)]
    pub(crate) supervised: bool,
}

impl UpOptions {
    pub(crate) fn profile(&self) -> Profile {
        if self.release {
            Profile::Release
        } else {
            Profile::Dev
        }
    }

    /// The same, for the process that is to keep the cluster.
    pub(super) fn supervised_arguments(&self) -> Vec<String> {
        let mut arguments = vec!["up".to_owned(), "--supervised".to_owned()];
        arguments.push(format!("--speed={}", self.speed));
        arguments.extend(self.no_stand_ins.then(|| "--no-stand-ins".to_owned()));
        arguments.extend(self.release.then(|| "--release".to_owned()));
        let absent: Vec<_> = self.without.iter().map(|c| c.name()).collect();
        if !absent.is_empty() {
            arguments.push(format!("--without={}", absent.join(",")));
        }
        arguments
    }
}

/// How much faster than life the other side is played.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) struct Speed(f64);

impl Speed {
    pub(crate) const fn new(factor: f64) -> Self {
        Self(factor)
    }

    /// A time of life at this speed.
    pub(crate) fn scaled(self, time: Duration) -> Duration {
        time.div_f64(self.0)
    }

    /// The flags by which a controller keeps up.
    pub(crate) fn flags(self, controller: Controller) -> Vec<String> {
        if self == Self::default() {
            return Vec::new();
        }
        let paced = PACED.iter().filter(|(who, ..)| *who == controller);
        paced
            .flat_map(|(_, flag, time, least)| {
                let time = self.scaled(*time).max(*least);
                [(*flag).to_owned(), milliseconds(time)]
            })
            .collect()
    }
}

impl Default for Speed {
    fn default() -> Self {
        Self(1.0)
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<f64>() {
            Ok(factor) if factor > 0.0 && factor <= FASTEST => Ok(Self(factor)),
            _ => Err(format!(
                "a speed is a number above 0 and at most {FASTEST}; 1 is life, 10 is ten times faster"
            )),
        }
    }
}

/// A time as Kite's flags read it.
pub(crate) fn milliseconds(time: Duration) -> String {
    format!("{}ms", time.as_millis().max(1))
}

fn controller(text: &str) -> Result<Controller, String> {
    let is_meant = |c: &Controller| {
        let short = c.name().strip_prefix("kite-");
        c.name() == text || short == Some(text)
    };
    Controller::ALL.into_iter().find(is_meant).ok_or_else(|| {
        format!(
            "it is not one of {}",
            Controller::ALL.map(Controller::name).join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: UpOptions,
    }

    fn parse(arguments: &[&str]) -> Result<UpOptions, String> {
        let line = Line::try_parse_from([&["up"], arguments].concat());
        line.map(|line| line.options)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn controllers_are_named_with_or_without_their_prefix() {
        let options = parse(&["--without", "kite-vm,service"]).unwrap();
        assert_eq!(options.without, [Controller::Vm, Controller::Service]);
        let said = parse(&["--without", "kite-vn"]).unwrap_err();
        assert!(said.contains("kite-vm-status"), "{said}");
    }

    #[test]
    fn a_speed_that_would_stop_time_is_refused() {
        for wrong in ["0", "-1", "NaN", "1001", "fast"] {
            let said = parse(&[&format!("--speed={wrong}")]).unwrap_err();
            assert!(said.contains("10 is ten times faster"), "{said}");
        }
        assert_eq!(parse(&["--speed=2.5"]).unwrap().speed, Speed(2.5));
    }

    #[test]
    fn the_process_that_keeps_the_cluster_is_told_everything() {
        let given = [
            "--detach",
            "--without=vm,user",
            "--no-stand-ins",
            "--speed=4",
        ];
        let options = parse(&given).unwrap();
        let arguments = options.supervised_arguments();
        let rest: Vec<_> = arguments[1..].iter().map(String::as_str).collect();
        let again = parse(&rest).unwrap();
        assert!(again.supervised && again.no_stand_ins && !again.release && !again.detach);
        assert_eq!(again.without, options.without);
        assert_eq!(again.speed, options.speed);
    }

    #[test]
    fn kites_intervals_follow_the_speed_and_keep_their_defaults_without_one() {
        assert!(Speed::new(1.0).flags(Controller::VmStatus).is_empty());
        assert_eq!(
            Speed::new(10.0).flags(Controller::DataVolume),
            ["--tick-interval", "1000ms", "--error-hold", "1000ms"]
        );
        assert_eq!(
            Speed::new(20.0).flags(Controller::VmStatus),
            ["--error-hold", "500ms", "--settle", "500ms"]
        );
        assert!(Speed::new(10.0).flags(Controller::Vm).is_empty());
    }
}
