//! The command `narrows-agent`. The library `narrows_agent` implements it.

use std::process::ExitCode;

use narrows_agent::agents::Built;
use narrows_agent::cli;

fn main() -> ExitCode {
    cli::run(&Built)
}
