//! The files that a scenario names. All input of this crate goes through the trait [`Files`], so the crate also runs in
//! browsers.

use std::collections::BTreeMap;

/// A source of files: scenarios, traces, matrices, and files of parameters and programs.
pub trait Files {
    /// Returns the content of a file. If the file has more than `most` bytes, the result may be cut to `most` + 1
    /// bytes. A caller detects a file that is too long by this length.
    ///
    /// # Errors
    /// Returns the reason if the file cannot be read.
    fn read(&self, path: &str, most: u64) -> Result<Vec<u8>, Unreadable>;

    /// Returns the absolute path of a file or folder, or `None` if there is neither.
    fn find(&self, path: &str) -> Option<String>;

    /// Returns the names of the networks of topohub, or `None` if topohub is not installed.
    fn networks(&self) -> Option<Vec<String>> {
        None
    }

    /// Returns a network of topohub as JSON in node-link form.
    fn network(&self, _name: &str) -> Option<String> {
        None
    }
}

/// The reason why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// There is no such file.
    Missing,
    /// It is a folder.
    Folder,
    /// The path is not valid.
    NoPath,
    /// Another reason, in the words of the operating system.
    Other(String),
}

impl Unreadable {
    /// Returns `found no file, expected <what>`, or another reason.
    pub(crate) fn expected(&self, what: &str) -> String {
        let found = match self {
            Unreadable::Missing => "no file".to_owned(),
            Unreadable::Folder => "a folder".to_owned(),
            Unreadable::NoPath => "no path".to_owned(),
            Unreadable::Other(reason) => format!("an unreadable file ({reason})"),
        };
        format!("found {found}, expected {what}")
    }

    /// Returns the reason in the words of the operating system.
    pub(crate) fn reason(&self) -> &str {
        match self {
            Unreadable::Missing => "No such file or directory",
            Unreadable::Folder => "Is a directory",
            Unreadable::NoPath => "not a path",
            Unreadable::Other(reason) => reason,
        }
    }
}

/// No files at all.
#[derive(Copy, Clone, Debug, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _path: &str, _most: u64) -> Result<Vec<u8>, Unreadable> {
        Err(Unreadable::Other("this program reads no files".to_owned()))
    }
    fn find(&self, _path: &str) -> Option<String> {
        None
    }
}

/// Files in memory, by path, e.g. in a browser.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    files: BTreeMap<String, Vec<u8>>,
    networks: BTreeMap<String, String>,
}

impl Memory {
    /// Adds a file.
    #[must_use]
    pub fn with(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.to_owned(), content.into());
        self
    }

    /// Adds a network of topohub, as JSON in node-link form.
    #[must_use]
    pub fn with_network(mut self, name: &str, json: &str) -> Self {
        self.networks.insert(name.to_owned(), json.to_owned());
        self
    }
}

impl Files for Memory {
    fn read(&self, path: &str, _most: u64) -> Result<Vec<u8>, Unreadable> {
        self.files.get(path).cloned().ok_or(Unreadable::Missing)
    }
    fn find(&self, path: &str) -> Option<String> {
        self.files.contains_key(path).then(|| path.to_owned())
    }
    fn networks(&self) -> Option<Vec<String>> {
        (!self.networks.is_empty()).then(|| self.networks.keys().cloned().collect())
    }
    fn network(&self, name: &str) -> Option<String> {
        self.networks.get(name).cloned()
    }
}

/// The file system.
#[cfg(not(target_family = "wasm"))]
#[derive(Clone, Debug, Default)]
pub struct Disk {
    networks: Option<std::path::PathBuf>,
}

#[cfg(not(target_family = "wasm"))]
impl Disk {
    /// Returns the file system, with the networks of topohub in this folder.
    pub fn with_networks(folder: impl Into<std::path::PathBuf>) -> Self {
        Disk { networks: Some(folder.into()) }
    }
}

#[cfg(not(target_family = "wasm"))]
impl Files for Disk {
    fn read(&self, path: &str, most: u64) -> Result<Vec<u8>, Unreadable> {
        use std::io::{ErrorKind, Read};

        if path.contains('\0') {
            return Err(Unreadable::NoPath);
        }
        let path = if path.is_empty() { "." } else { path };
        let read = || {
            let mut content = Vec::new();
            std::fs::File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut content)?;
            Ok(content)
        };
        read().map_err(|error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => Unreadable::Missing,
            ErrorKind::IsADirectory => Unreadable::Folder,
            _ => {
                // The standard library appends the number of the error.
                let text = error.to_string();
                let reason = text.split(" (os error").next().unwrap_or(&text);
                Unreadable::Other(reason.to_owned())
            }
        })
    }

    fn find(&self, path: &str) -> Option<String> {
        if path.contains('\0') {
            return None;
        }
        let path = std::fs::canonicalize(path).ok()?;
        // A pipe or a device cannot be copied.
        let is_usable = path.is_file() || path.is_dir();
        is_usable.then(|| path.to_string_lossy().into_owned())
    }

    fn networks(&self) -> Option<Vec<String>> {
        let root = self.networks.as_ref()?;
        let (mut names, mut waiting) = (Vec::new(), vec![root.clone()]);
        while let Some(folder) = waiting.pop() {
            for entry in std::fs::read_dir(folder).ok()?.flatten() {
                let path = entry.path();
                if path.is_dir() {
                    waiting.push(path);
                } else if path.extension().is_some_and(|extension| extension == "json") {
                    let name = path.strip_prefix(root).ok()?.with_extension("");
                    names.push(name.to_string_lossy().into_owned());
                }
            }
        }
        names.sort_unstable();
        Some(names)
    }

    fn network(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.networks.as_ref()?.join(format!("{name}.json"))).ok()
    }
}

/// Returns a path relative to a folder.
pub(crate) fn join(folder: &str, path: &str) -> String {
    match folder {
        _ if path.starts_with('/') => path.to_owned(),
        "" | "." => path.to_owned(),
        _ if folder.ends_with('/') => format!("{folder}{path}"),
        _ => format!("{folder}/{path}"),
    }
}
