//! Splits commands into words, as a POSIX shell does.

/// Returns the words of a command.
///
/// # Errors
/// Returns the problem if a quotation or an escaped character is incomplete.
pub(crate) fn split(command: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = command.chars();
    while let Some(c) = letters.next() {
        match c {
            ' ' | '\t' | '\r' | '\n' => words.extend(word.take()),
            '\\' => {
                let next = letters.next().ok_or("no escaped character")?;
                word.get_or_insert_default().push(next);
            }
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next().ok_or("no closing quotation")? {
                        '\'' => break,
                        inner => word.push(inner),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next().ok_or("no closing quotation")? {
                        '"' => break,
                        // Within double quotes, a backslash escapes only itself and the quote.
                        '\\' => match letters.next().ok_or("no escaped character")? {
                            escaped @ ('"' | '\\') => word.push(escaped),
                            other => word.extend(['\\', other]),
                        },
                        inner => word.push(inner),
                    }
                }
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn words_are_those_of_a_shell() {
        let words = |command| split(command).map_err(str::to_owned);
        assert_eq!(
            words(r#"a 'b c' "d\"e\f" g\ h ''"#),
            Ok(vec!["a".into(), "b c".into(), r#"d"e\f"#.into(), "g h".into(), String::new()])
        );
        assert_eq!(words("a 'b"), Err("no closing quotation".into()));
        assert_eq!(words("a \\"), Err("no escaped character".into()));
    }
}
