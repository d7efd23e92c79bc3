//! What a run stands on, as the report tells it: processors, memory, kernel, servers, versions.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use k8s_openapi::jiff::Zoned;

use crate::report::Report;

/// Writes into a report when, with what command and on what it was made.
pub fn describe(report: &mut Report) {
    report.version = version();
    report.date = Zoned::now().date().to_string();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    report.command = format!("cargo xtask bench {}", arguments.join(" "));
    report.machine = machine();
    report.settings = settings();
}

fn version() -> String {
    let own = env!("CARGO_PKG_VERSION");
    match said_by("git", &["rev-parse", "--short", "HEAD"]) {
        Some(commit) => format!("{own} ({commit})"),
        None => own.to_owned(),
    }
}

fn machine() -> BTreeMap<String, String> {
    let count = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let field = |file: &str, name: &str| {
        let text = fs::read_to_string(file).ok()?;
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let of = |name: &str, value: Option<String>| {
        (
            name.to_owned(),
            value.unwrap_or_else(|| "unknown".to_owned()),
        )
    };
    [
        of("processors", Some(count.to_string())),
        of("processor", field("/proc/cpuinfo", "model name")),
        of("memory", field("/proc/meminfo", "MemTotal")),
        of(
            "kernel",
            said_by("uname", &["-sr"]).map(|said| version_of(&said)),
        ),
    ]
    .into()
}

/// A kernel's version without what its builder added.
fn version_of(said: &str) -> String {
    said.split('-').next().unwrap_or_default().to_owned()
}

fn settings() -> BTreeMap<String, String> {
    [
        (
            "servers",
            "one etcd, one kube-apiserver, one kube-controller-manager, on loopback, \
             beside the contestants on the same processors",
        ),
        ("etcd", "on memory, no fsync"),
        (
            "audit",
            "off when timing; level Metadata, every request, when counting",
        ),
        (
            "KubeVirt and CDI",
            "real definitions, played by stand-ins without webhooks, one claim for each disk, which they bind \
             themselves, since the server's own binder takes one claim after the other",
        ),
        (
            "Kite",
            "one replica each, default flags, `clonesPerImage: 1000` so that clones do not take turns",
        ),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

fn said_by(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| output.status.success() && !text.is_empty())
}
