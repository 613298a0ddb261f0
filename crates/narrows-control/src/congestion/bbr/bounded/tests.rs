use super::*;
use crate::congestion::bbr::{Bbr, v2, v3};
use crate::congestion::harness::{Path, Sender};

const LINK: Rate = Rate::from_bits_per_sec(100_000_000);

#[test]
fn explore() {
    for (name, build) in [
        ("bbr", (|| Box::new(Bbr::default()) as Box<dyn Controller>) as fn() -> Box<dyn Controller>),
        ("bbr2", || Box::new(v2::bbr2())),
        ("bbr3", || Box::new(v3::bbr3())),
    ] {
        for (queue, loss) in [(1000, 0u64), (83, 0), (1000, 1), (1000, 2), (1000, 5)] {
            let f = Box::new(move |seq: u64, _| {
                seq.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32 < (1u64 << 32) / 100 * loss
            });
            let mut s = Sender::new(build(), Path { queue, loss: f, ..Path::new(LINK, 20) });
            s.run_for(Span::from_secs(2));
            let (d, q, l) = (s.delivered(), s.queue_seconds(), s.lost());
            s.run_for(Span::from_secs(20));
            let share = (s.delivered() - d) as f64 * 12_000.0 / 20.0 / 1e8;
            println!(
                "{name} queue {queue} loss {loss}: share {share:.3} delay {:.2} ms lost {} bw {:.1} rtt {:.2} lt {} st {} round {} startup-lost {l}",
                (s.queue_seconds() - q) / 20.0 * 1e3,
                s.lost() - l,
                s.figure("bw") * 8e-6,
                s.figure("min_rtt") * 1e3,
                s.figure("inflight_longterm"),
                s.figure("inflight_shortterm"),
                s.figure("round"),
            );
        }
    }
}
