//! The folder of one control plane: memory-backed where that is possible, and
//! gone when its owner is, also when the owner was killed or never drops it.
//!
//! Two things remove it: a guard process that waits for the end of its owner, or
//! of this value, and the next start's sweep. A set `KITE_KEEP` keeps it. With
//! `KITE_LOGS_DIR` the guard moves the logs there first; data and keys never.

use std::env;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// Keeps the folders of tests, logs and audit log included.
const KEEP_VARIABLE: &str = "KITE_KEEP";

/// Where the logs go when a folder is removed.
const LOGS_VARIABLE: &str = "KITE_LOGS_DIR";

/// Marks our folders among those of others.
const PREFIX: &str = "kite-testkit-";

/// Where Linux keeps memory-backed files.
const MEMORY: &str = "/dev/shm";

/// etcd preallocates its files; containers often give a memory folder of 64 MB.
const ENOUGH: u64 = 1 << 30;

/// Waits until its input ends, which is when its owner has ended, moves the logs
/// to where they are wanted, and removes the folder; once more after a second,
/// since the owner's children may still have been dying.
const GUARD: &str = r#"cat >/dev/null
if [ -n "$2" ]; then mkdir -p -- "$2" && mv -- "$1"/logs "$2/${1##*/}"; fi
rm -rf -- "$1" || { sleep 1; rm -rf -- "$1"; }"#;

/// A folder that is removed with its owner, unless it was named by the caller.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    temporary: Option<Temporary>,
}

#[derive(Debug)]
struct Temporary {
    /// Held as long as the owner lives, so that a sweep leaves the folder alone.
    _lock: File,
    guard: Child,
}

impl Folder {
    /// A folder that the caller named and keeps.
    pub(super) fn kept(path: &Path) -> Result<Self> {
        fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            temporary: None,
        })
    }

    /// A new temporary folder; those that others left behind are removed.
    pub(super) fn temporary() -> Result<Self> {
        let base = base();
        sweep(&base);
        // Locked under another name first, so that no sweep meets it unlocked.
        let new = tempfile::Builder::new()
            .prefix("new-kite-testkit-")
            .tempdir_in(&base)?
            .keep();
        let lock = File::create(new.join("lock"))?;
        lock.lock()?;
        let name = new.file_name().context("a temporary folder has a name")?;
        let path = base.join(name.to_string_lossy().trim_start_matches("new-"));
        fs::rename(&new, &path)?;
        if env::var_os(KEEP_VARIABLE).is_some() {
            // A sweep takes only what has a lock file.
            fs::remove_file(path.join("lock"))?;
            eprintln!("kite: kept in {}", path.display());
            return Self::kept(&path);
        }
        let guard = Command::new("sh")
            .args(["-c", GUARD, "kite-testkit-guard"])
            .arg(&path)
            .arg(env::var_os(LOGS_VARIABLE).unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("cannot start sh")?;
        Ok(Self {
            path,
            temporary: Some(Temporary { _lock: lock, guard }),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(temporary) = &mut self.temporary {
            drop(temporary.guard.stdin.take());
            temporary.guard.wait().ok();
        }
    }
}

fn base() -> PathBuf {
    let memory = Path::new(MEMORY);
    let room = nix::sys::statvfs::statvfs(memory)
        .map(|stats| stats.blocks_available() * stats.fragment_size())
        .unwrap_or_default();
    let writable = room >= ENOUGH && tempfile::tempfile_in(memory).is_ok();
    if writable {
        memory.to_owned()
    } else {
        env::temp_dir()
    }
}

/// Removes the folders whose owner is gone: its lock went with it.
fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let lock = File::open(entry.path().join("lock"));
        if ours && lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}
