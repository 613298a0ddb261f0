//! The status socket, both ends: a request line, and the answer that the client displays.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_agent::status::server::read_request;
use narrows_agent::status::{Snapshot, text};
use narrows_fuzz::bounded;

fuzz_target!(|input: &[u8]| {
    bounded(1 << 20, || {
        if let Ok(Ok(request)) = read_request(input) {
            let again = serde_json::to_vec(&request).expect("JSON");
            assert_eq!(read_request(&again[..]).expect("a line").expect("a request"), request);
        }
        if let Ok(snapshot) = serde_json::from_slice::<Snapshot>(input) {
            text::render(&snapshot);
            text::flows(&snapshot);
        }
    });
});
