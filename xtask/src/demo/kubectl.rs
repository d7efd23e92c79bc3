//! kubectl, shown as a user would type it and run as it is shown.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use kite_testkit::programs::{self, Program};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::up::{Report, tell};
use crate::workspace::root;

/// Before every line of its output.
const INDENT: &str = "            ";

/// The real program and the administrator's kubeconfig.
pub(super) struct Kubectl<'a> {
    program: PathBuf,
    kubeconfig: PathBuf,
    cache: PathBuf,
    report: &'a Report,
}

/// What it said.
struct Said {
    success: bool,
    stdout: String,
    stderr: String,
}

impl<'a> Kubectl<'a> {
    pub(super) async fn new(kubeconfig: &Path, cache: &Path, report: &'a Report) -> Result<Self> {
        let found = programs::find_all(&[Program::Kubectl]).await?;
        Ok(Self {
            program: found[0].clone(),
            kubeconfig: kubeconfig.to_owned(),
            cache: cache.to_owned(),
            report,
        })
    }

    /// Runs a command that has to succeed, and shows it with what it says.
    pub(super) async fn run(&self, arguments: &[&str]) -> Result<()> {
        self.show(arguments, "");
        let said = self.call(arguments, "").await?;
        show_output(&said.stdout);
        show_output(&said.stderr);
        if !said.success {
            bail!("kubectl failed: {}", said.stderr.trim());
        }
        Ok(())
    }

    /// Runs a command that has to be refused, and returns the refusal.
    pub(super) async fn refused(&self, arguments: &[&str], input: &str) -> Result<String> {
        self.show(arguments, input);
        let said = self.call(arguments, input).await?;
        show_output(&said.stdout);
        show_output(&said.stderr);
        if said.success {
            bail!("the API server accepted what it should have refused");
        }
        Ok(said.stderr)
    }

    fn show(&self, arguments: &[&str], input: &str) {
        let quoted: Vec<String> = arguments.iter().map(|argument| quote(argument)).collect();
        let command = format!("$ kubectl {}", quoted.join(" "));
        if input.is_empty() {
            self.report.line(&command);
        } else {
            self.report.line(&format!("{command} <<EOF"));
            show_output(input);
            show_output("EOF");
        }
    }

    async fn call(&self, arguments: &[&str], input: &str) -> Result<Said> {
        let mut child = Command::new(&self.program)
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            // A cache of its own: it must not believe an older cluster at this address.
            .env("KUBECACHEDIR", &self.cache)
            .current_dir(root())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for us, who then stop what there is in order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .context("cannot start kubectl")?;
        let mut stdin = child.stdin.take().context("kubectl has no input")?;
        let write = async {
            // It may end without reading.
            stdin.write_all(input.as_bytes()).await.ok();
            drop(stdin);
        };
        let ((), output) = tokio::join!(write, child.wait_with_output());
        let output = output?;
        Ok(Said {
            success: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

fn show_output(text: &str) {
    for line in text.lines() {
        tell(&format!("{INDENT}{line}"));
    }
}

/// As a shell needs it.
fn quote(argument: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=,:@".contains(&byte);
    if !argument.is_empty() && argument.bytes().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_pasted_into_a_shell() {
        assert_eq!(quote("docs/examples/user.yaml"), "docs/examples/user.yaml");
        assert_eq!(quote(r#"{"a":1}"#), r#"'{"a":1}'"#);
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote(""), "''");
    }
}
