//! For arbitrary events with arbitrary values, nothing panics, and rates stay within bounds.

use proptest::prelude::*;

use super::tests::controller;
use crate::rate::aggregate::{Counts, FlowHandle};
use crate::rate::kit::testing::{ACK, FIN, RST, SYN, SYN_ACK, mbit, packet};
use crate::rate::{LEAVES, PortCounters, RateOption, TcpFlags};
use crate::units::{Bytes, Rate, Span, Time};

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Packet { n: u32, payload: u64, flags: TcpFlags, option: RateOption, stamps: (u32, u32), reverse: bool },
    Counts { handle: u64, bytes: u64, halves: (u64, u64), since: u64 },
    Port { bytes: [u64; LEAVES], capacity: u64, queued: u64 },
}

fn any_step() -> impl Strategy<Value = Step> {
    let flags = prop::sample::select(vec![SYN, SYN_ACK, ACK, ACK, ACK, FIN, RST]);
    let option = prop_oneof![
        Just(RateOption::Absent),
        Just(RateOption::Unassigned),
        any::<u64>().prop_map(|r| RateOption::Assigned(Rate::from_bytes_per_sec(r))),
    ];
    let figure = || prop_oneof![0..100_000u64, any::<u64>()];
    prop_oneof![
        prop_oneof![0..1_000_000u64, 0..10_000_000_000u64].prop_map(Step::Wait),
        (0..12u32, 0..3000u64, flags, option, any::<(u32, u32)>(), any::<bool>()).prop_map(
            |(n, payload, flags, option, stamps, reverse)| Step::Packet {
                n,
                payload,
                flags,
                option,
                stamps,
                reverse
            }
        ),
        (prop_oneof![0..12u64, any::<u64>()], figure(), (figure(), figure()), figure())
            .prop_map(|(handle, bytes, halves, since)| Step::Counts { handle, bytes, halves, since }),
        (prop::array::uniform4(figure()), figure(), figure())
            .prop_map(|(bytes, capacity, queued)| Step::Port { bytes, capacity, queued }),
    ]
}

proptest! {
    #[test]
    fn rates_stay_in_bounds_for_any_input(
        steps in prop::collection::vec(any_step(), 1..200),
    ) {
        let mut controller = controller("rcp", 8);
        let mut port = PortCounters { capacity: Some(mbit(100.0)), ..PortCounters::default() };
        let (mut now, mut actions) = (Time::from_nanos(1), Vec::new());
        controller.on_start(now, &port, &mut actions);
        for step in steps {
            match step {
                Step::Wait(nanos) => now += Span::from_nanos(nanos),
                Step::Packet { n, payload, flags, option, stamps, reverse } => {
                    let mut packet = packet(n, payload, flags, option);
                    packet.timestamps = Some(stamps);
                    if reverse {
                        let told = controller.on_reverse(now, &packet, &mut actions);
                        let asks = !matches!(told, Some(rate) if rate == Rate::ZERO);
                        prop_assert!(asks, "the controller never writes a rate of zero");
                    } else {
                        controller.on_data(now, &packet, &port, &mut actions);
                    }
                }
                Step::Counts { handle, bytes, halves, since } => {
                    let counts = Counts {
                        since: Time::from_nanos(since),
                        bytes: Bytes::new(bytes),
                        receiver_half: Some(Span::from_nanos(halves.0)),
                        sender_half: Some(Span::from_nanos(halves.1)),
                        ..Counts::default()
                    };
                    controller.on_counts(now, FlowHandle(handle), &counts, &mut actions);
                    controller.decide(now, FlowHandle(handle));
                }
                Step::Port { bytes, capacity, queued } => {
                    for (counter, more) in port.arrived.iter_mut().zip(bytes) {
                        *counter = Bytes::new(counter.get().wrapping_add(more));
                    }
                    port.departed = port.arrived;
                    port.capacity = Some(Rate::from_bytes_per_sec(capacity));
                    port.queued = [Bytes::new(queued); LEAVES];
                }
            }
            if now >= controller.next_timer() {
                controller.on_timer(now, &port, &mut actions);
                let capacity = port.capacity.unwrap_or_default();
                let [one, ten] = [1, 10].map(|n| controller.grant(None, n).unwrap());
                prop_assert!(ten <= one, "{one:?} {ten:?}");
                // The comparison allows for the rounding error of a float.
                prop_assert!(one.as_f64() <= capacity.as_f64() * (1.0 + 1e-12) + 1.0, "{one:?} of {capacity:?}");
                prop_assert!(ten > Rate::ZERO);
                controller.version();
            }
            controller.trace(&mut |name, value| assert!(value.is_finite(), "{name} is {value}"));
        }
    }
}
