//! Answers requests about scenarios, one JSON object a line, e.g. for programs in other languages.
//!
//! ```sh
//! echo '{"text": "duration = \"1s\"", "source": "x.toml"}' | cargo run --example answers
//! ```

use std::error::Error;
use std::io::{BufRead, Write};

use narrows_control::catalogue::Catalogue;
use narrows_scenario::{Disk, message};

fn main() -> Result<(), Box<dyn Error>> {
    let disk = std::env::args().nth(1).map_or_else(Disk::default, Disk::with_networks);
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        match message::answer(&line?, Catalogue::built_in(), &disk) {
            Ok(answer) => writeln!(output, "{answer}")?,
            Err(error) => writeln!(output, "{}", serde_json::json!({ "error": error.to_string() }))?,
        }
        output.flush()?;
    }
    Ok(())
}
