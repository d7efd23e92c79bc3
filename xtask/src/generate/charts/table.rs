//! The one table of the six controllers and their flags, from which the thin charts are made.
//!
//! A flag's words and its default are not in it: they are asked of the command
//! line itself, so that the charts never say anything else than the programs.

use clap::{Args, Command};
use kite_runtime::Program;
use kite_runtime::rbac::Scope;
use kite_runtime::settings::Settings;

use super::super::roles;

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Takes {
    /// `true` or `false`.
    Bool,
    /// Nothing: it is given or left out.
    Nothing,
    /// A time such as `10s`.
    Time,
    /// A whole number in these bounds.
    Number(u32, u32),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any text.
    Text,
}

/// A flag that is a value of the chart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flag {
    /// Its long name.
    pub(super) long: &'static str,
    /// The value's place; by default the flag's name in camel case, at the top.
    pub(super) place: Option<&'static str>,
    pub(super) takes: Takes,
    /// Where the chart knows more than the program: another default and another rendering.
    pub(super) known: Option<Known>,
}

/// What a chart knows about a flag that the program cannot know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// The value's type, description and default in `values.yaml`.
    pub(super) kind: &'static str,
    pub(super) text: &'static str,
    pub(super) default: &'static str,
    /// The template's expression for what is given to the program.
    pub(super) expression: &'static str,
}

impl Flag {
    const fn new(long: &'static str, takes: Takes) -> Self {
        Self {
            long,
            place: None,
            takes,
            known: None,
        }
    }

    const fn at(mut self, place: &'static str) -> Self {
        self.place = Some(place);
        self
    }

    const fn known(mut self, known: Known) -> Self {
        self.known = Some(known);
        self
    }
}

/// Flags of all six.
pub(super) const SHARED: &[Flag] = &[
    Flag::new("log-level", Takes::Text),
    Flag::new("log-format", Takes::Word(&["json", "text"])),
    Flag::new("concurrency", Takes::Number(1, 512)),
    Flag::new("pass-timeout", Takes::Time),
    Flag::new("request-timeout", Takes::Time),
    Flag::new("shutdown-grace", Takes::Time),
    Flag::new("leader-election", Takes::Bool).at("leaderElection.enabled"),
    Flag::new("lease-duration", Takes::Time).at("leaderElection.leaseDuration"),
    Flag::new("renew-interval", Takes::Time).at("leaderElection.renewInterval"),
    Flag::new("renew-deadline", Takes::Time).at("leaderElection.renewDeadline"),
    Flag::new("retry-interval", Takes::Time).at("leaderElection.retryInterval"),
];

const USER: &[Flag] = &[
    Flag::new("vm-service-account", Takes::Text).known(Known {
        kind: "string",
        text: "kite-vm's ServiceAccount as `namespace/name`, which gets its rights on Secrets in each user's namespace. Empty: `kite-vm` in the release's namespace.",
        default: "\"\"",
        expression: "(default (printf \"%s/kite-vm\" .Release.Namespace) .Values.vmServiceAccount)",
    }),
    Flag::new("reserved-namespaces", Takes::Text).known(Known {
        kind: "list of strings",
        text: "Namespaces that no user may have, beside the release's own and those that the KitePlatform names.",
        default: "[kubevirt, cdi]",
        expression: "(join \",\" (uniq (prepend .Values.reservedNamespaces .Release.Namespace)))",
    }),
    Flag::new("quota-clones", Takes::Number(1, 1000)),
];

const NAMESPACE: &[Flag] = &[
    Flag::new("grace-period", Takes::Time),
    Flag::new("brake-share", Takes::Number(0, 100)),
    Flag::new("brake-least", Takes::Number(0, 65_535)),
    Flag::new("blocked-after", Takes::Time),
];

const VM: &[Flag] = &[
    Flag::new("memory-grows", Takes::Bool),
    Flag::new("clone-patience", Takes::Time),
    Flag::new("deletion-patience", Takes::Time),
];

const VM_STATUS: &[Flag] = &[
    Flag::new("error-hold", Takes::Time),
    Flag::new("settle", Takes::Time),
    Flag::new("transition-timeout", Takes::Time),
];

const DATA_VOLUME: &[Flag] = &[
    Flag::new("tick-interval", Takes::Time),
    Flag::new("mirror-every-tick", Takes::Nothing),
    Flag::new("stuck-after", Takes::Time),
    Flag::new("error-hold", Takes::Time),
];

/// A controller as its chart sees it.
pub(super) struct Controller {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// The flags that are its own.
    pub(super) own: &'static [Flag],
    /// Its whole command line.
    pub(super) command: Command,
    /// Whether it has rights in the namespace of the published images.
    pub(super) images: bool,
}

fn controller<P: Program>(own: &'static [Flag]) -> Controller {
    let name = P::CONTROLLER.name();
    let rights = roles::controllers();
    let mut rules = rights.iter().filter(|c| c.name == name);
    Controller {
        name,
        about: P::ABOUT,
        own,
        command: Settings::augment_args(P::Flags::augment_args(Command::new(name))),
        images: rules.any(|c| c.rules.iter().any(|r| r.scope == Scope::ImageNamespace)),
    }
}

/// The six, in the order of the design.
pub(super) fn controllers() -> [Controller; 6] {
    [
        controller::<kite_user::KiteUserProgram>(USER),
        controller::<kite_namespace::KiteNamespaceProgram>(NAMESPACE),
        controller::<kite_vm::KiteVm>(VM),
        controller::<kite_vm_status::KiteVmStatus>(VM_STATUS),
        controller::<kite_service::KiteService>(&[]),
        controller::<kite_datavolume::KiteDataVolume>(DATA_VOLUME),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Flags that are no value: the chart sets them itself, also from `metrics.secure`, or a
    /// pod has no use for them.
    const NOT_VALUES: [&str; 8] = [
        "listen",
        "namespace",
        "identity",
        "kubeconfig",
        "metrics-listen",
        "metrics-auth",
        "tls-cert-file",
        "tls-key-file",
    ];

    // A flag that is added to a program has to be made a value, or said to be none.
    #[test]
    fn the_values_of_each_chart_are_exactly_the_flags_of_its_program() {
        for controller in controllers() {
            let flags: BTreeSet<_> = controller
                .command
                .get_arguments()
                .filter_map(clap::Arg::get_long)
                .collect();
            let table = SHARED.iter().chain(controller.own).map(|f| f.long);
            let known: BTreeSet<_> = table.chain(NOT_VALUES).collect();
            assert_eq!(flags, known, "{}", controller.name);
        }
    }

    fn accepts(controller: &Controller, flag: Flag, value: &str) -> bool {
        let given = format!("--{}={value}", flag.long);
        let line = [controller.name, given.as_str()];
        controller
            .command
            .clone()
            .try_get_matches_from(line)
            .is_ok()
    }

    #[test]
    fn each_program_takes_what_its_chart_takes_and_nothing_beyond() {
        for controller in controllers() {
            for &flag in SHARED.iter().chain(controller.own) {
                let (good, bad): (Vec<String>, Vec<String>) = match flag.takes {
                    Takes::Bool => (vec!["true".into(), "false".into()], vec!["yes!".into()]),
                    Takes::Time => (
                        ["0s", "500ms", "10s", "5m", "2h", "1h30m"]
                            .map(Into::into)
                            .into(),
                        vec!["10".into(), "soon".into()],
                    ),
                    Takes::Number(least, most) => (
                        vec![least.to_string(), most.to_string()],
                        vec![(i64::from(least) - 1).to_string(), (most + 1).to_string()],
                    ),
                    Takes::Word(words) => (
                        words.iter().map(|&w| w.into()).collect(),
                        vec!["xml".into()],
                    ),
                    Takes::Nothing | Takes::Text => continue,
                };
                for value in good {
                    assert!(accepts(&controller, flag, &value), "{flag:?} {value}");
                }
                for value in bad {
                    assert!(!accepts(&controller, flag, &value), "{flag:?} {value}");
                }
            }
        }
    }
}
