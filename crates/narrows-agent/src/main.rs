//! `narrows-agent`: see the library.

use std::process::ExitCode;

use narrows_agent::agents::Built;
use narrows_agent::cli;

fn main() -> ExitCode {
    cli::run(&Built)
}
