//! The parts of messages that follow Python: values as Python writes them, near names, and numbers with six digits.

use crate::error::LONGEST_FOUND;

/// Returns whether a character can be printed: it is not a control, format, surrogate or unassigned character, and no
/// separator except the space.
pub(crate) fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // `escape_debug` of a string escapes all characters that cannot be printed. The letter before `c` is needed,
    // because a combining character at the start would also be escaped.
    let text: String = ['a', c].into_iter().collect();
    text.escape_debug().nth(1).is_none_or(|first| first != '\\')
}

/// Returns a string in quotes.
pub(crate) fn repr_text(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut result = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => result.push_str("\\\\"),
            '\n' => result.push_str("\\n"),
            '\r' => result.push_str("\\r"),
            '\t' => result.push_str("\\t"),
            c if c == quote => result.extend(['\\', c]),
            c if is_printable(c) => result.push(c),
            c => match u32::from(c) {
                code if code < 0x100 => result.push_str(&format!("\\x{code:02x}")),
                code if code < 0x1_0000 => result.push_str(&format!("\\u{code:04x}")),
                code => result.push_str(&format!("\\U{code:08x}")),
            },
        }
    }
    result.push(quote);
    result
}

/// Returns the shortest text that gives the same number.
pub(crate) fn repr_float(n: f64) -> String {
    if n.is_nan() {
        return "nan".to_owned();
    }
    if n.is_infinite() {
        return if n > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{n:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if n != 0.0 && !(-4..16).contains(&exponent) {
        return format!("{digits}e{}", signed(exponent));
    }
    let plain = format!("{n}");
    if plain.contains('.') { plain } else { format!("{plain}.0") }
}

/// Returns a number with six significant digits, without trailing zeros.
pub(crate) fn six_digits(n: f64) -> String {
    if !n.is_finite() {
        return repr_float(n);
    }
    let scientific = format!("{n:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let without_zeros = |text: &str| -> String {
        if !text.contains('.') {
            return text.to_owned();
        }
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if !(-4..6).contains(&exponent) {
        return format!("{}e{}", without_zeros(digits), signed(exponent));
    }
    let places = usize::try_from(5 - exponent).unwrap_or(0);
    without_zeros(&format!("{n:.places$}"))
}

/// Returns an exponent with its sign and at least two digits.
fn signed(exponent: i32) -> String {
    format!("{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// Minimum ratio at which two names are near each other. 'brv' is near 'brf' (0.67); 'copa' is not near 'xcp' (0.57).
const ALIKE: f64 = 0.6;

/// Returns the name that is most similar to a text, if one is similar. Case is ignored.
pub(crate) fn nearest<'n>(value: &str, known: &[&'n str]) -> Option<&'n str> {
    let given: Vec<char> =
        value.chars().take(LONGEST_FOUND).collect::<String>().to_lowercase().chars().collect();
    let mut best: Option<(f64, String, &str)> = None;
    for &name in known {
        let folded = name.to_lowercase();
        let letters: Vec<char> = folded.chars().collect();
        let ratio = similarity(&letters, &given);
        // If several names have the same ratio, the last one in alphabetical order is taken.
        let better =
            best.as_ref().is_none_or(|(most, other, _)| ratio > *most || (ratio == *most && folded > *other));
        if ratio >= ALIKE && better {
            best = Some((ratio, folded, name));
        }
    }
    best.map(|(_, _, name)| name)
}

/// Returns twice the number of matching characters, divided by the number of all characters (Ratcliff and Obershelp
/// 1988).
fn similarity(a: &[char], b: &[char]) -> f64 {
    let total = a.len() + b.len();
    if total == 0 { 1.0 } else { 2.0 * matching(a, b) as f64 / total as f64 }
}

/// Returns the length of the longest common part, plus the result of this function for the parts before it and for the
/// parts after it.
fn matching(a: &[char], b: &[char]) -> usize {
    let (mut best, mut at_a, mut at_b) = (0, 0, 0);
    let mut lengths = vec![0usize; b.len() + 1];
    for (i, letter) in a.iter().enumerate() {
        let mut diagonal = 0;
        for (j, other) in b.iter().enumerate() {
            let above = lengths[j + 1];
            lengths[j + 1] = if letter == other { diagonal + 1 } else { 0 };
            diagonal = above;
            if lengths[j + 1] > best {
                best = lengths[j + 1];
                (at_a, at_b) = (i + 1 - best, j + 1 - best);
            }
        }
    }
    if best == 0 {
        return 0;
    }
    best + matching(&a[..at_a], &b[..at_b]) + matching(&a[at_a + best..], &b[at_b + best..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_in_python() {
        let cases = [
            (0.1, "0.1"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (1e-5, "1e-05"),
            (-0.0, "-0.0"),
            (1.5e300, "1.5e+300"),
        ];
        for (number, text) in cases {
            assert_eq!(repr_float(number), text);
        }
        for (number, text) in [
            (1e6, "1e+06"),
            (100000.0, "100000"),
            (0.0001, "0.0001"),
            (12.5, "12.5"),
            (1234567.0, "1.23457e+06"),
        ] {
            assert_eq!(six_digits(number), text);
        }
    }

    #[test]
    fn strings_are_quoted_as_in_python() {
        assert_eq!(repr_text("it's"), "\"it's\"");
        assert_eq!(repr_text("a\"b'c\n\u{200b}\u{7}é"), "'a\"b\\'c\\n\\u200b\\x07é'");
        assert!(is_printable('\u{301}'));
        assert!(!is_printable('\u{a0}'));
    }

    #[test]
    fn the_nearest_name_is_found() {
        assert_eq!(nearest("brv", &["brf", "rcp"]), Some("brf"));
        assert_eq!(nearest("copa", &["xcp"]), None);
        assert_eq!(nearest("DUMBELL", &["star", "dumbbell"]), Some("dumbbell"));
    }
}
