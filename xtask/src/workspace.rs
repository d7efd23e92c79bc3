//! Where the workspace is, and its files by name.
//!
//! Files are found by walking, not by asking git, so that a file is checked
//! before it is committed and in a source archive alike.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The top folder of the workspace.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// A text file, for those who judge its lines.
pub(crate) struct Source {
    /// Path from the top folder, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// Reads a file of the workspace.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        Ok(Self {
            path: shown(path).replace('\\', "/"),
            text: read(path)?,
        })
    }

    /// The lines with their numbers, which start at one.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }
}

/// All Rust files of the workspace.
pub(crate) fn sources() -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for folder in ["crates", "xtask"] {
        for path in files(&root().join(folder), "rs")? {
            sources.push(Source::read(&path)?);
        }
    }
    Ok(sources)
}

/// A path as it is shown to people and typed on a command line: from the top folder.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string()
}

/// All files under a folder with this extension, sorted. Build output and hidden folders are left out.
pub(crate) fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            let name = entry.file_name();
            let hidden = name.as_encoded_bytes().starts_with(b".");
            if entry.file_type()?.is_dir() {
                if !hidden && name != "target" {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Reads a text file, naming it when that fails.
pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", shown(path)))
}
