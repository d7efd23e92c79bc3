//! `cargo xtask release-build`: the six programs as they are shipped, and how large they are.
//!
//! The images build the same in their own base; this is for those who have no
//! engine, and what watches that the programs stay small.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use kite_api::labels::Controller;

use crate::up::Table;
use crate::workspace::root;

/// A program that is larger has taken something in that it should not have: the
/// whole of it is read from a registry by each node that runs it.
const MOST_MIB: f64 = 15.0;

/// What is aimed at.
const AIM_MIB: f64 = 10.0;

const MIB: f64 = 1024.0 * 1024.0;

/// Builds the six for this machine, static where that is possible, and prints their sizes.
pub(crate) fn run() -> Result<()> {
    let target = target()?;
    let status = build(&target).status().context("cannot start cargo")?;
    if !status.success() {
        bail!("cargo build ended with {status}");
    }
    let folder = target_folder().join(&target).join("release");
    let mut sizes = Vec::new();
    for controller in Controller::ALL {
        let path = folder.join(controller.name());
        let file =
            fs::metadata(&path).with_context(|| format!("cannot find {}", path.display()))?;
        sizes.push((controller.name(), file.len()));
    }
    println!("{target}, in {}", folder.display());
    println!("{}", table(&sizes));
    judge(&sizes)
}

fn build(target: &str) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args([
        "build",
        "--release",
        "--locked",
        "--bins",
        "--target",
        target,
    ]);
    for controller in Controller::ALL {
        command.args(["--package", controller.name()]);
    }
    // The one C code in the programs, ring's, asks its headers for nothing that
    // differs between the C libraries, so the compiler of the machine will do.
    let compiler = format!("CC_{}", target.replace('-', "_"));
    if target.ends_with("-musl") && env::var_os(&compiler).is_none() {
        command.env(compiler, "cc");
    }
    command.current_dir(root());
    command
}

/// The musl target of this machine if the compiler has its standard library, else the machine's own.
fn target() -> Result<String> {
    let host = rustc(&["-vV"])?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc does not say what it runs on")?;
    let library = PathBuf::from(rustc(&["--print", "sysroot"])?.trim()).join("lib/rustlib");
    let installed = |target: &str| library.join(target).join("lib").is_dir();
    let chosen = choose(host, installed);
    if !chosen.ends_with("-musl") {
        println!(
            "the programs will not be static; `rustup target add {}` changes that",
            musl(host)
        );
    }
    Ok(chosen)
}

fn musl(host: &str) -> String {
    host.replace("-gnu", "-musl")
}

fn choose(host: &str, installed: impl Fn(&str) -> bool) -> String {
    let musl = musl(host);
    if installed(&musl) {
        musl
    } else {
        host.to_owned()
    }
}

fn rustc(arguments: &[&str]) -> Result<String> {
    let program = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output()
        .context("cannot start rustc")?;
    Ok(String::from_utf8(output.stdout)?)
}

fn target_folder() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn mib(bytes: u64) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "programs are far below 2^52 bytes"
    )]
    let bytes = bytes as f64;
    bytes / MIB
}

fn table(sizes: &[(&str, u64)]) -> Table {
    let mut table = Table::new(["PROGRAM", "MIB", "AIM OF 10", "LIMIT OF 15"]);
    let word = |good| if good { "kept" } else { "missed" }.to_owned();
    for &(name, bytes) in sizes {
        let mib = mib(bytes);
        table.row([
            name.to_owned(),
            format!("{mib:.1}"),
            word(mib <= AIM_MIB),
            word(mib <= MOST_MIB),
        ]);
    }
    table
}

fn judge(sizes: &[(&str, u64)]) -> Result<()> {
    let large = sizes.iter().filter(|(_, bytes)| mib(*bytes) > MOST_MIB);
    let large: Vec<&str> = large.map(|(name, _)| *name).collect();
    if large.is_empty() {
        return Ok(());
    }
    bail!(
        "larger than {MOST_MIB} MiB: {}; `cargo tree -p {} -e normal` shows what they consist of",
        large.join(", "),
        large[0]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_static_where_the_library_for_it_is_installed() {
        let host = "x86_64-unknown-linux-gnu";
        assert_eq!(choose(host, |_| false), host);
        assert_eq!(choose(host, |_| true), "x86_64-unknown-linux-musl");
        assert_eq!(
            choose("aarch64-unknown-linux-musl", |_| true),
            "aarch64-unknown-linux-musl"
        );
    }

    #[test]
    fn a_program_above_the_limit_fails_and_one_above_the_aim_does_not() {
        let small = [("kite-vm", 11 << 20)];
        judge(&small).unwrap();
        assert!(table(&small).to_string().contains("missed"));
        let large = [("kite-user", 1), ("kite-vm", 16 << 20)];
        let error = judge(&large).unwrap_err().to_string();
        assert!(error.contains("15 MiB: kite-vm;"), "{error}");
    }
}
