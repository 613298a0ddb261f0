//! Drives CUBIC by hand, round trip by round trip: slow start, one loss, then congestion avoidance.
//!
//! ```sh
//! cargo run -p narrows-control --example drive_cubic
//! ```

use narrows_control::catalogue;
use narrows_control::congestion::{Ack, Congestion, Connection, Signal, Window};
use narrows_control::units::{Span, Time};

const RTT: Span = Span::from_millis(40);
const SEGMENT: u32 = 1500;

fn main() {
    let mut cc = catalogue::build("cubic").expect("CUBIC is built in");
    let mut window = Window::new(10);
    let mut now = Time::ZERO + RTT;
    cc.on_established(&Connection::new(now, SEGMENT, Some(RTT)), &mut window);

    for round in 0..80 {
        println!("{:7.3} s  cwnd {:4}  ssthresh {}", now.as_secs_f64(), window.cwnd, threshold(&window));
        if round == 6 {
            // A real transport lowers the window gradually during recovery. This example lowers it in one step.
            cc.on_congestion(&Congestion::new(Signal::Loss, now), &mut window);
            window.cwnd = window.ssthresh;
            cc.on_recovered(now, &mut window);
        }
        let gap = RTT.scale(1, u64::from(window.cwnd));
        for _ in 0..window.cwnd {
            now += gap;
            let mut ack = Ack::new(now, 1);
            ack.rtt = Some(RTT);
            ack.srtt = RTT;
            ack.min_rtt = RTT;
            cc.on_sample(&ack);
            cc.on_ack(&ack, &mut window);
        }
    }
}

fn threshold(window: &Window) -> String {
    if window.ssthresh > 1_000_000 { "-".into() } else { window.ssthresh.to_string() }
}
