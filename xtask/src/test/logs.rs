//! What is left to look at when a test program failed: the logs of its clusters,
//! and every request to them. A program that ended well leaves nothing.
//!
//! The control planes put their logs there when they go (`KITE_LOGS_DIR`). Their
//! data is not kept; with `KITE_KEEP` the whole cluster's folder is.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::AuditFolder;
use super::side_by_side::Program;
use crate::workspace::root;

/// Where the logs of a program's clusters are.
pub(super) fn folder(program: &Program) -> PathBuf {
    let name = program.name.replace(|c: char| !c.is_alphanumeric(), "-");
    root().join("target").join("test-logs").join(name)
}

/// Removes what this run or one before left of a program.
pub(super) fn forget(program: &Program) -> Result<()> {
    let folder = folder(program);
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Puts a program's audit logs to its other logs, and says where they are.
pub(super) fn keep(program: &Program, audit: &AuditFolder) -> Result<PathBuf> {
    let folder = folder(program);
    fs::create_dir_all(&folder)?;
    let owner = program.executable.file_stem().unwrap_or_default();
    copy_of_owner(&audit.0, &owner.to_string_lossy(), &folder)
        .with_context(|| format!("cannot copy audit logs to {}", folder.display()))?;
    Ok(folder)
}

/// Audit logs are named by the program, a dot, and the control plane's folder.
fn copy_of_owner(audit: &Path, owner: &str, to: &Path) -> Result<()> {
    let own = format!("{owner}.");
    for entry in fs::read_dir(audit)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&own) {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_program_keeps_its_own_requests_and_no_others() {
        let (audit, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for name in ["life-1.plane.log", "life-12.plane.log", "disks-1.plane.log"] {
            fs::write(audit.path().join(name), name).unwrap();
        }
        copy_of_owner(audit.path(), "life-1", kept.path()).unwrap();
        let names: Vec<_> = fs::read_dir(kept.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["life-1.plane.log"]);
    }
}
