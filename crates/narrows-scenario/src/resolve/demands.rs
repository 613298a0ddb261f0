//! Traffic matrices from CSV files. Each demand is a line `from,to,mbit`.

use super::traces::lines;
use crate::error::{Error, Result, found_text};
use crate::files::{Files, Unreadable, join};
use crate::topology::Demand;

/// Maximum size of a file.
const MAX_BYTES: u64 = 16 << 20;
/// Maximum demand. It is the same as the maximum rate of a link.
const MOST_MBIT: f64 = 1e9;
const HEADER: [&str; 3] = ["from", "to", "mbit"];

/// Reads demands, each with its line number. Empty lines, comments (#) and a header are skipped.
///
/// # Errors
/// Returns an error for a mistake in the file, with the file and the line. If the file cannot be read, the error names `key`
/// instead of a line.
pub(super) fn read(file: &str, folder: &str, key: &str, files: &dyn Files) -> Result<Vec<(Demand, String)>> {
    let content = files.read(&join(folder, file), MAX_BYTES).map_err(|problem: Unreadable| {
        let shown = found_text(file);
        let reason = problem.reason();
        Error::new(format!("found {shown}, expected 'sndlib' or a readable CSV file ({reason})"), key)
    })?;
    if content.len() as u64 > MAX_BYTES {
        let message = format!("found more than {} MiB, expected a traffic matrix", MAX_BYTES >> 20);
        return Err(Error::in_file(message, "", file));
    }
    let text = String::from_utf8(content)
        .map_err(|_| Error::in_file("found other bytes, expected UTF-8 text", "", file))?;
    let mut demands: Vec<(Demand, String)> = Vec::new();
    for (number, line) in lines(text.strip_prefix('\u{feff}').unwrap_or(&text)).enumerate() {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let cells = cells(line);
        if demands.is_empty() && cells.iter().map(|cell| cell.to_lowercase()).eq(HEADER.map(str::to_owned)) {
            continue;
        }
        let place = format!("line {}", number + 1);
        let [from, to, mbit] = cells.as_slice() else {
            let message = format!("found {} columns, expected from,to,mbit", cells.len());
            return Err(Error::in_file(message, place, file));
        };
        let mbit = rate(mbit).ok_or_else(|| {
            let message = format!("found {}, expected Mbit/s from 0 to {MOST_MBIT:.0}", found_text(mbit));
            Error::in_file(message, &place, file)
        })?;
        demands.push((Demand { from: from.clone(), to: to.clone(), mbit }, place));
    }
    if demands.is_empty() {
        let message = "found no demands, expected lines such as 'a,b,12.5' (from,to,mbit)";
        return Err(Error::in_file(message, "", file));
    }
    Ok(demands)
}

/// Returns a rate in Mbit/s, if it is in range.
fn rate(cell: &str) -> Option<f64> {
    // A number may have underscores between digits, as in Python.
    let is_between = |at: usize, bytes: &[u8]| {
        at > 0 && bytes[at - 1].is_ascii_digit() && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
    };
    let bytes = cell.as_bytes();
    let all_between = bytes.iter().enumerate().all(|(at, byte)| *byte != b'_' || is_between(at, bytes));
    let number: f64 = cell.replace('_', "").parse().ok().filter(|_| all_between)?;
    (0.0..=MOST_MBIT).contains(&number).then_some(number)
}

/// Returns the cells of a line. A cell in double quotes may contain commas, and two double quotes for one.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let (mut is_quoted, mut is_start) = (false, true);
    let mut letters = line.chars().peekable();
    while let Some(c) = letters.next() {
        let Some(cell) = cells.last_mut() else { break };
        match c {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            '"' if is_quoted => is_quoted = false,
            '"' if is_start => is_quoted = true,
            ',' if !is_quoted => {
                cells.push(String::new());
                is_start = true;
                continue;
            }
            other => cell.push(other),
        }
        is_start = false;
    }
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::{cells, rate};

    #[test]
    fn quoted_cells_may_contain_commas() {
        assert_eq!(cells("\"a,b\", c ,\"d\"\"e\""), ["a,b", "c", "d\"e"]);
        assert_eq!(cells(""), [""]);
    }

    #[test]
    fn rates_are_in_range() {
        assert_eq!(
            [rate("1_0.5"), rate("-1"), rate("nan"), rate("1__0"), rate("1e9")],
            [Some(10.5), None, None, None, Some(1e9)]
        );
    }
}
