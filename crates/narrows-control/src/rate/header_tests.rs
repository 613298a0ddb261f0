//! Tests every header-based controller with arbitrary headers, including headers that no sender of Narrows writes. No
//! controller may panic, or grant more than its limits allow. Headers of other protocols must pass unchanged.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{FlowKey, HeaderController, LEAVES, PortCounters, RateController, bdr, registry, xcp};
use crate::feedback::header::{Bdr, Custom, Header, Obp, Rcp};
use crate::rate::bdr::Recommendation;
use crate::units::{Bytes, Rate, Span, Time};

fn build(kind: &str, params: &[(&'static str, &'static str)]) -> Option<Box<dyn HeaderController>> {
    let params = params
        .iter()
        .map(|&(name, word)| (name.to_owned(), crate::parameter::Value::Word(word.into())))
        .collect();
    match registry::build::<FlowKey>(kind, &params, 1, Bytes::new(1500)).unwrap() {
        RateController::Headers(controller) => Some(controller),
        RateController::PerFlow(_) => None,
    }
}

/// Returns all header-based controllers by name. A controller with two modes is listed once for each mode.
fn controllers() -> Vec<Box<dyn HeaderController>> {
    let all = registry::all().iter().map(|entry| build(entry.name, &[]));
    all.chain([build("bdr", &[("mode", "literal")])]).flatten().collect()
}

/// Generates plausible values, or arbitrary ones.
fn number(usual: u64) -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..usual, 1 => Just(0), 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn rate() -> impl Strategy<Value = Rate> {
    number(1_000_000_000).prop_map(Rate::from_bytes_per_sec)
}

fn span() -> impl Strategy<Value = Span> {
    number(1_000_000_000).prop_map(Span::from_nanos)
}

fn advice() -> impl Strategy<Value = Recommendation> {
    prop_oneof![rate().prop_map(Recommendation::Rate), any::<i32>().prop_map(Recommendation::Gain)]
}

/// Generates headers from arbitrary received words, and headers with values beyond the range of a word.
fn header() -> impl Strategy<Value = Header> {
    let of = proptest::option::of::<_>;
    let report = (any::<[bool; 3]>(), span(), any::<u32>(), span(), number(1500)).prop_map(
        |([syn, fin, first_data], t_rep, size_cwin, time_per_cwin, size)| bdr::Report {
            syn,
            fin,
            first_data,
            t_rep,
            size_cwin,
            time_per_cwin,
            packet_size: Bytes::new(size),
        },
    );
    let delta = prop_oneof![-1_000_000i64..1_000_000, Just(i64::MIN), Just(i64::MAX), any::<i64>()];
    prop_oneof![
        1 => Just(Header::None),
        1 => (0usize..12, any::<[u32; 12]>()).prop_map(|(used, words)| {
            let mut header = Custom::new(9, 12);
            header.push(&words[..used]);
            Header::Custom(header)
        }),
        4 => (0u32..7, any::<[u32; 5]>()).prop_map(|(kind, [noise, a, b, c, d])| {
            Header::from_words([noise & !0xff | kind, a, b, c, d])
        }),
        2 => (rate(), proptest::option::of(span())).prop_map(|(rate, rtt)| Header::Rcp(Rcp { rate, rtt })),
        2 => (any::<u32>(), any::<u32>(), delta)
            .prop_map(|(rtt, x, delta)| Header::Xcp(xcp::Header { rtt, x, delta })),
        2 => (report, proptest::option::of(advice()))
            .prop_map(|(report, advice)| Header::Bdr(Bdr { report, advice })),
        2 => (of(rate()), rate(), rate(), rate())
            .prop_map(|(own, available, capacity, rate)| Header::Obp(Obp { own, available, capacity, rate })),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Packet { header: Header, size: u64, queued: u64 },
    Port { capacity: Option<u64>, departed: [u64; LEAVES], queued: u64, limit: u32 },
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (header(), number(3000), number(1_000_000))
            .prop_map(|(header, size, queued)| Step::Packet { header, size, queued }),
        1 => (proptest::option::of(number(1_000_000_000)), proptest::array::uniform4(number(1_000_000)),
              number(1_000_000), any::<u32>())
            .prop_map(|(capacity, departed, queued, limit)| Step::Port { capacity, departed, queued, limit }),
        3 => number(100_000_000).prop_map(Step::Wait),
    ]
}

fn traced(controller: &dyn HeaderController, wanted: &str) -> f64 {
    let mut found = f64::NAN;
    controller.trace(&mut |name, value| {
        if name == wanted {
            found = value;
        }
    });
    found
}

/// Returns whether a rate is at most the capacity, to the precision of a float.
fn fits(rate: Rate, capacity: Rate) -> bool {
    rate.as_f64() <= capacity.as_f64() * (1.0 + 1e-12) + 1.0
}

/// Returns whether a port with this capacity may replace `before` by `after`. `give` and `take` are the residues of
/// XCP: the total increase and decrease that the port may still distribute.
fn granted(before: Header, after: Header, capacity: Rate, (give, take): (f64, f64)) -> bool {
    match (before, after) {
        (Header::Rcp(before), Header::Rcp(after)) => {
            after.rtt == before.rtt && after.rate <= before.rate && fits(after.rate, capacity)
        }
        (Header::Obp(before), Header::Obp(after)) => {
            after.own == before.own && after.rate <= before.rate && fits(after.rate, capacity)
        }
        // XCP-4: a packet without an RTT gets no change of its rate.
        (Header::Xcp(before), Header::Xcp(after)) if before.rtt == 0 => after.delta == 0,
        (Header::Xcp(before), Header::Xcp(after)) => {
            let delta = after.delta as f64;
            let same = (before.rtt, before.x) == (after.rtt, after.x);
            same && after.delta <= before.delta
                && delta <= give
                && (after.delta == before.delta || delta >= -take)
        }
        (Header::Bdr(before), Header::Bdr(after)) => {
            before.report == after.report
                && match (before.advice, after.advice) {
                    (Some(Recommendation::Rate(theirs)), Some(Recommendation::Rate(ours))) => ours <= theirs,
                    (Some(Recommendation::Gain(theirs)), Some(Recommendation::Gain(ours))) => ours <= theirs,
                    (None, Some(Recommendation::Rate(ours))) => fits(ours, capacity),
                    (None, Some(Recommendation::Gain(_)) | None) => true,
                    _ => false,
                }
        }
        _ => false,
    }
}

#[test]
fn the_list_has_every_header_based_controller() {
    let names: Vec<&str> = controllers().iter().map(|c| c.name()).collect();
    assert_eq!(names, ["rcp", "xcp", "bdr", "obp", "bdr"]);
}

proptest! {
    #[test]
    fn absurd_headers_give_bounded_answers(steps in vec(step(), 1..100)) {
        for mut controller in controllers() {
            let name = controller.name();
            let mut port = PortCounters { capacity: Some(Rate::from_bits_per_sec(100_000_000)), ..PortCounters::default() };
            let mut now = Time::from_nanos(1);
            controller.on_start(now, &port);
            for step in steps.clone() {
                match step {
                    Step::Packet { header: before, size, queued } => {
                        let mut header = before;
                        let size = Bytes::new(size);
                        controller.on_arrival(now, size, &mut header, &port);
                        let residues = (traced(&*controller, "res_pos"), traced(&*controller, "res_neg"));
                        controller.on_departure(now, size, &mut header, Bytes::new(queued));
                        let ours = matches!(
                            (name, before),
                            ("rcp", Header::Rcp(_)) | ("xcp", Header::Xcp(_)) | ("bdr", Header::Bdr(_)) | ("obp", Header::Obp(_))
                        );
                        let capacity = port.capacity.unwrap_or_default();
                        prop_assert!(
                            if ours { granted(before, header, capacity, residues) } else { header == before },
                            "{name}: {before:?} became {header:?} at {capacity:?} with {residues:?}"
                        );
                        // Values that do not fit into a word are encoded as the largest word.
                        // For a custom header, `to_words` returns only the kind, so the size is lost.
                        if !matches!(header, Header::Custom(_)) {
                            prop_assert_eq!(Header::from_words(header.to_words()).wire_bytes(), before.wire_bytes());
                        }
                    }
                    Step::Port { capacity, departed, queued, limit } => {
                        port.capacity = capacity.map(Rate::from_bytes_per_sec);
                        port.departed = departed.map(Bytes::new);
                        port.queued = [Bytes::new(queued); LEAVES];
                        port.limit_packets = [limit; LEAVES];
                        controller.on_timer(now, &port);
                    }
                    Step::Wait(nanos) => {
                        now += Span::from_nanos(nanos);
                        if now >= controller.next_timer() {
                            controller.on_timer(now, &port);
                            prop_assert!(controller.next_timer() > now || now == Time::NEVER, "{name} is due again at once");
                        }
                    }
                }
                controller.trace(&mut |key, value| assert!(value.is_finite(), "{name}: {key} is {value}"));
            }
        }
    }
}
