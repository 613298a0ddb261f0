//! Fuzzes the metrics page with requests that arrive in pieces. The first byte of the input is the length of
//! the first piece.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_agent::metrics::answer;
use narrows_fuzz::bounded;

const PAGE: &str = "a 1\n# EOF\n";

fuzz_target!(|input: &[u8]| {
    let Some((cut, request)) = input.split_first() else { return };
    bounded(1 << 16, || {
        let mut page = || Some(PAGE.to_owned());
        let early = answer(&request[..request.len().min(usize::from(*cut))], &mut page);
        let Some(whole) = answer(request, &mut page) else {
            assert!(early.is_none(), "a request that was answered becomes incomplete");
            return;
        };
        let text = std::str::from_utf8(&whole).expect("an answer in UTF-8");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 ") && head.len() < 300);
        let length = head.split("\r\nContent-Length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
        let length: usize = length.and_then(|digits| digits.parse().ok()).expect("a length");
        assert!(body.is_empty() || body.len() == length);
    });
});
