//! Man pages and shell completions, generated from the command line's definition when a package is built.

use std::path::Path;
use std::{fs, io};

use clap::CommandFactory;
use clap_complete::Generator;
use clap_complete::shells::{Bash, Fish, Zsh};

use super::Args;

/// Writes a man page for each visible command into `folder`/man1, and the completions into `folder`/SHELL.
pub(super) fn write_into(folder: &Path) -> io::Result<()> {
    let pages = folder.join("man1");
    fs::create_dir_all(&pages)?;
    clap_mangen::generate_to(Args::command(), pages)?;
    complete(Bash, &folder.join("bash"))?;
    complete(Zsh, &folder.join("zsh"))?;
    complete(Fish, &folder.join("fish"))
}

/// Writes a shell's completions into `folder`. The shell determines the name of the file, e.g. `_narrows-agent` for
/// zsh.
fn complete(shell: impl Generator, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut command = Args::command();
    let name = command.get_name().to_owned();
    clap_complete::generate_to(shell, &mut command, name, folder).map(drop)
}
