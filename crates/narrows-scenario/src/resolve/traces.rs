//! Reads capacity traces in the formats mahimahi and CSV. Errors name the line.

use std::rc::Rc;

use narrows_control::units::{Rate, Time};
use narrows_plan::RatePlan;

use crate::data::FULL_PACKET;
use crate::error::{Error, Result, found_text, hint};
use crate::files::{Files, join};
use crate::model::{Column, TimeUnit, Trace, TraceFormat};
use crate::units::{
    BitRate, MAX_BITS_PER_SEC, MAX_NANOS, NANOS_PER_SEC, Span, format_duration, format_rate, parse_rate,
};
use crate::value::Value;
use crate::value::decimal::Decimal;

const MAX_TRACE_BYTES: u64 = 1 << 30;
const DEFAULT_GAP_STEPS: u64 = 10;
const DEFAULT_GAP: u64 = 10 * NANOS_PER_SEC;
/// Longest accepted gap in a mahimahi trace. A radio may be silent for many seconds. If a gap is longer than a minute, a
/// part of the recording is probably missing.
const MAX_HOLE_MILLIS: u64 = 60_000;
/// Bits of a full packet.
const PACKET_BITS: u64 = FULL_PACKET as u64 * 8;

/// A parsed trace.
#[derive(Clone, Debug)]
pub(super) struct Capacity {
    /// The value of `rate` in the plan.
    pub(super) plan: RatePlan,
    /// Mean rate of the trace.
    pub(super) mean: BitRate,
    /// Highest rate (mahimahi: highest mean over 100 ms).
    pub(super) peak: BitRate,
}

/// Reads a trace.
///
/// # Errors
/// Returns an error for a mistake in the trace, with its file and line.
pub(super) fn read(trace: &Trace, folder: &str, files: &dyn Files) -> Result<Rc<Capacity>> {
    let content = files.read(&join(folder, &trace.file), MAX_TRACE_BYTES).map_err(|problem| {
        let file = found_text(&trace.file);
        Error::new(format!("found {file}, expected a readable file ({})", problem.reason()), "file")
    })?;
    if content.len() as u64 > MAX_TRACE_BYTES {
        return Err(Error::new(format!("found a trace of more than {} MiB", MAX_TRACE_BYTES >> 20), "file"));
    }
    let text = String::from_utf8(content).map_err(|_| {
        Error::new(format!("found {}, expected a text file", found_text(&trace.file)), "file")
    })?;
    let lines: Vec<Line<'_>> = lines(&text)
        .enumerate()
        .map(|(i, line)| Line { number: i + 1, text: line.trim() })
        .filter(|line| !line.text.is_empty() && !line.text.starts_with('#'))
        .collect();
    if lines.is_empty() {
        return Err(bad(trace, 1, "found an empty trace, expected at least one line"));
    }
    let capacity = match trace.format {
        TraceFormat::Mahimahi => mahimahi(trace, &lines)?,
        TraceFormat::Csv => csv(trace, &lines)?,
    };
    Ok(Rc::new(capacity))
}

/// Returns the lines of a text. A line ends at each character that separates lines.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = (!text.is_empty()).then_some(text);
    std::iter::from_fn(move || {
        let all = rest?;
        let separators =
            ['\n', '\r', '\x0b', '\x0c', '\x1c', '\x1d', '\x1e', '\u{85}', '\u{2028}', '\u{2029}'];
        let Some(end) = all.find(separators) else {
            rest = None;
            return Some(all);
        };
        let separator = all[end..].chars().next().map_or(1, char::len_utf8);
        let length = if all[end..].starts_with("\r\n") { 2 } else { separator };
        rest = Some(&all[end + length..]).filter(|rest| !rest.is_empty());
        Some(&all[..end])
    })
}

#[derive(Copy, Clone)]
struct Line<'t> {
    number: usize,
    text: &'t str,
}

fn bad(trace: &Trace, line: usize, message: impl AsRef<str>) -> Error {
    Error::in_file(message, format!("line {line}"), &trace.file)
}

/// Each line is the time in ms at which 1500 bytes may be sent. Times do not decrease (mm-link(1)).
fn mahimahi(trace: &Trace, lines: &[Line<'_>]) -> Result<Capacity> {
    let mut millis: Vec<u32> = Vec::with_capacity(lines.len());
    for line in lines {
        let is_number = line.text.len() <= 10 && line.text.bytes().all(|byte| byte.is_ascii_digit());
        let Some(at) = line.text.parse::<u32>().ok().filter(|_| is_number) else {
            let has_columns = line.text.contains(|c: char| c == ',' || c == ';' || c.is_whitespace());
            let csv = if has_columns { "; is it format = \"csv\"?" } else { "" };
            let message = format!("found {}, expected whole milliseconds{csv}", found_text(line.text));
            return Err(bad(trace, line.number, message));
        };
        let before = millis.last().copied().unwrap_or(0);
        if at < before {
            let message = format!("found {at} after {before}, expected times that do not decrease");
            return Err(bad(trace, line.number, message));
        }
        let hole = u64::from(at - before);
        if hole > MAX_HOLE_MILLIS {
            let message =
                format!("found a gap of {} s, expected at most {} s", hole / 1000, MAX_HOLE_MILLIS / 1000);
            return Err(bad(trace, line.number, message));
        }
        millis.push(at);
    }
    let period = millis.last().copied().unwrap_or(0);
    if period == 0 {
        let last = lines.last().map_or(1, |line| line.number);
        return Err(bad(trace, last, "found a trace of 0 ms, expected a last line above 0"));
    }
    let mean = millis.len() as u64 * PACKET_BITS * 1000 / u64::from(period);
    // The peak is the highest rate over 100 ms, because a burst within one millisecond is not a rate.
    let most = millis.chunk_by(|a, b| a / 100 == b / 100).map(<[u32]>::len).max().unwrap_or(0);
    let peak = most as u64 * PACKET_BITS * 10;
    let plan = RatePlan::Opportunities { millis, period_millis: period, bytes: FULL_PACKET };
    Ok(Capacity { plan, mean: BitRate(mean.max(8)), peak: BitRate(peak.max(mean).max(8)) })
}

/// Each line has a time and a rate. The scenario names the columns by number, or by name if the file has a header.
///
/// Columns are separated by commas, semicolons, tabs or blanks.
fn csv(trace: &Trace, lines: &[Line<'_>]) -> Result<Capacity> {
    let per_unit = parse_rate(&Value::Text(format!("1{}", trace.unit))).map_err(|_| {
        Error::new(format!("found {}, expected a unit such as 'mbit/s'", found_text(&trace.unit)), "unit")
    })?;
    let Some((first, later)) = lines.split_first() else {
        return Err(bad(trace, 1, "found an empty trace, expected at least one line"));
    };
    let separator = [',', ';', '\t'].into_iter().find(|separator| first.text.contains(*separator));
    let split = |text| cells(text, separator);
    let header = split(first.text);
    let has_header = header.iter().any(|cell| Decimal::parse(cell).is_none());
    let names = has_header.then_some(header.as_slice());
    let time_at = column(&trace.time, names, header.len(), "time")?;
    let rate_at = column(&trace.rate, names, header.len(), "rate")?;
    let rows = if has_header { later } else { lines };
    let (Some(first_row), Some(last_row)) = (rows.first(), rows.last()) else {
        let message = "found a header only, expected at least one line of figures";
        return Err(bad(trace, first.number, message));
    };
    let scale = match trace.time_unit {
        TimeUnit::Seconds => NANOS_PER_SEC,
        TimeUnit::Millis => 1_000_000,
        TimeUnit::Micros => 1_000,
    };
    let mut times: Vec<i64> = Vec::with_capacity(rows.len());
    let mut rates: Vec<u64> = Vec::with_capacity(rows.len());
    for row in rows {
        let cells = split(row.text);
        let value = |name: &str, at: usize| {
            let cell = cells.get(at).copied().unwrap_or("");
            Decimal::parse(cell).ok_or_else(|| {
                bad(trace, row.number, format!("found {} for {name}, expected a number", found_text(cell)))
            })
        };
        let (time, rate) = (value("time", time_at)?, value("rate", rate_at)?);
        // A time that does not fit into 64 bits is later than all others, so the trace is too long.
        let extreme = if time.is_negative() { i64::MIN / 2 } else { i64::MAX / 2 };
        let at = time.times(scale).rounded_to_even().unwrap_or(extreme).clamp(i64::MIN / 2, i64::MAX / 2);
        let bits = rate.times(per_unit.0).truncated();
        let bits = match bits {
            Some(bits) if bits < 0 => None,
            None if rate.is_negative() => None,
            Some(bits) => Some(bits.unsigned_abs()),
            None => Some(u64::MAX),
        };
        let Some(bits) = bits else {
            let message = format!("found a rate of {}, expected none below zero", rate.as_fraction());
            return Err(bad(trace, row.number, message));
        };
        if bits > MAX_BITS_PER_SEC {
            let most = format_rate(BitRate(MAX_BITS_PER_SEC));
            return Err(bad(trace, row.number, format!("found a rate above {most}")));
        }
        if times.last().is_some_and(|before| at <= *before) {
            let message = "found a time that is not after the one before, expected rising times";
            return Err(bad(trace, row.number, message));
        }
        times.push(at);
        rates.push(bits);
    }
    let steps: Vec<u64> = times.windows(2).map(|pair| pair[0].abs_diff(pair[1])).collect();
    check_gaps(trace, rows, &steps)?;
    let last_step = median(&steps).unwrap_or(NANOS_PER_SEC);
    let length = steps.iter().fold(last_step, |sum, step| sum.saturating_add(*step));
    if length > MAX_NANOS {
        let days = MAX_NANOS as f64 / (86_400.0 * NANOS_PER_SEC as f64);
        let message = format!("found a trace of more than {days:.1} days, expected another time_unit");
        return Err(bad(trace, last_row.number, message));
    }
    if !rates.iter().any(|rate| *rate >= 8) {
        return Err(bad(trace, first_row.number, "found no rate above zero in the whole trace"));
    }
    let start = times.first().copied().unwrap_or(0);
    let points = times
        .iter()
        .zip(&rates)
        .map(|(at, rate)| (Time::from_nanos(at.abs_diff(start)), Rate::from_bits_per_sec(*rate)));
    let plan =
        RatePlan::Steps { steps: points.collect(), period: trace.repeat.then_some(Span::from_nanos(length)) };
    let widths = steps.iter().chain([&last_step]);
    let area: u128 =
        rates.iter().zip(widths).map(|(rate, width)| u128::from(*rate) * u128::from(*width)).sum();
    let mean = u64::try_from(area / u128::from(length.max(1))).unwrap_or(MAX_BITS_PER_SEC);
    let peak = rates.iter().max().copied().unwrap_or(0);
    Ok(Capacity { plan, mean: BitRate(mean.max(8)), peak: BitRate(peak) })
}

/// Returns the median in whole nanoseconds. A half goes to the even number.
fn median(steps: &[u64]) -> Option<u64> {
    let mut sorted = steps.to_vec();
    sorted.sort_unstable();
    let high = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(high);
    }
    let low = *sorted.get(sorted.len() / 2 - 1)?;
    Some(((low as f64 + high as f64) / 2.0).round_ties_even() as u64)
}

/// Checks that the measurement has no gap. During a gap, the rate would seem to be constant.
fn check_gaps(trace: &Trace, rows: &[Line<'_>], steps: &[u64]) -> Result<()> {
    let Some(usual) = median(steps) else { return Ok(()) };
    let by_default = DEFAULT_GAP.max(DEFAULT_GAP_STEPS.saturating_mul(usual));
    let longest = trace.max_gap.map_or(by_default, Span::as_nanos);
    match steps.iter().zip(rows.iter().skip(1)).find(|(step, _)| **step > longest) {
        None => Ok(()),
        Some((step, row)) => {
            let (gap, most) = (Span::from_nanos(*step), Span::from_nanos(longest));
            let (gap, most) = (format_duration(gap), format_duration(most));
            let message = format!("found a gap of {gap}, expected at most {most} (see max_gap)");
            Err(bad(trace, row.number, message))
        }
    }
}

fn cells(text: &str, separator: Option<char>) -> Vec<&str> {
    match separator {
        Some(separator) => text.split(separator).map(str::trim).collect(),
        None => text.split_whitespace().collect(),
    }
}

/// Returns the number of a column.
fn column(which: &Column, header: Option<&[&str]>, width: usize, key: &str) -> Result<usize> {
    match (which, header) {
        (Column::Name(name), None) => {
            let name = found_text(name);
            Err(Error::new(format!("found {name}, expected a number: the trace has no header"), key))
        }
        (Column::Name(name), Some(header)) => header.iter().position(|cell| cell == name).ok_or_else(|| {
            let near = hint(name, header.iter().copied());
            Error::new(format!("found {}, expected a column{near}", found_text(name)), key)
        }),
        (Column::Number(number), _) => {
            number.parse().ok().filter(|column| *column < width).ok_or_else(|| {
                let last = width.saturating_sub(1);
                Error::new(format!("found {number}, expected a column from 0 to {last}"), key)
            })
        }
    }
}
