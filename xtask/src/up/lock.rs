//! One cluster at a time in a folder, and how another command finds who keeps it.
//!
//! The lock is the system's and goes with its process, however that ends; the
//! process id in the file is only for people and for `down`.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::time::Duration;

use anyhow::{Context, Result};

use super::files::Files;

/// The file's name in the folder.
pub(super) const FILE: &str = "lock";

/// Somebody who only looks holds the lock for a moment too.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// Held as long as the cluster is.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// The lock, unless another process holds it.
    pub(crate) fn take(files: &Files) -> Result<Option<Self>> {
        fs::create_dir_all(files.folder())?;
        let path = files.lock();
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => {
                    file.set_len(0)?;
                    write!(file, "{}", std::process::id())?;
                    return Ok(Some(Self { _file: file }));
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// The process that holds the lock.
    pub(crate) fn holder(files: &Files) -> Result<Option<u32>> {
        let Ok(mut file) = File::open(files.lock()) else {
            return Ok(None);
        };
        if file.try_lock_shared().is_ok() {
            return Ok(None);
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let pid = text.trim().parse();
        Ok(Some(pid.with_context(|| {
            format!("{} is held, and names no process", files.lock().display())
        })?))
    }
}
