//! Fuzzes both ends of the status socket: a request line, and the answer that the client displays.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_agent::status::server::{Request, read_request};
use narrows_agent::status::{Snapshot, text};
use narrows_fuzz::bounded;

fuzz_target!(|input: &[u8]| {
    bounded(1 << 20, || {
        if let Ok(Ok(request)) = read_request(input) {
            let again = serde_json::to_vec(&request).expect("JSON");
            // The test does not use `read_request` for this step, because the serialized request contains all defaults
            // and may exceed the maximum length of a line.
            assert_eq!(serde_json::from_slice::<Request>(&again).expect("a request"), request);
        }
        if let Ok(snapshot) = serde_json::from_slice::<Snapshot>(input) {
            text::render(&snapshot);
            text::flows(&snapshot);
        }
    });
});
