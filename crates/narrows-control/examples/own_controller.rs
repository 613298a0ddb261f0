//! Shows how to write your own controller: additive increase, multiplicative decrease, with both constants as
//! parameters.
//!
//! ```sh
//! cargo run -p narrows-control --example own_controller
//! ```

use narrows_control::congestion::{Ack, Congestion, Controller, Signal, Window};
use narrows_control::units::{Span, Time};

/// An AIMD controller. The window grows by `increase` segments per window of ACKs. A loss multiplies the window by
/// `decrease`.
struct Aimd {
    increase: u32,
    decrease: f64,
    acked: u32,
}

impl Controller for Aimd {
    fn name(&self) -> &'static str {
        "aimd"
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        if !ack.cwnd_limited {
            return;
        }
        self.acked += ack.acked * self.increase;
        while self.acked >= window.cwnd {
            self.acked -= window.cwnd;
            window.cwnd += 1;
        }
    }

    fn on_congestion(&mut self, _event: &Congestion, window: &mut Window) {
        window.ssthresh = ((f64::from(window.cwnd) * self.decrease) as u32).max(2);
    }
}

fn main() {
    let mut cc = Aimd { increase: 2, decrease: 0.8, acked: 0 };
    let mut window = Window::new(10);
    let mut now = Time::ZERO;
    for round in 1..=30 {
        for _ in 0..window.cwnd {
            cc.on_ack(&Ack::new(now, 1), &mut window);
        }
        // The path has room for 40 segments, and drops all segments beyond this number.
        if window.cwnd > 40 {
            cc.on_congestion(&Congestion::new(Signal::Loss, now), &mut window);
            window.cwnd = window.ssthresh;
        }
        println!("round {round:2}: {} segments", window.cwnd);
        now += Span::from_millis(20);
    }
}
