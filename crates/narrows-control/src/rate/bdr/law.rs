//! The law of one port: it computes each packet's recommendation from the reports of designated packets and the traffic
//! of the port (BDR-40 to BDR-43). The law costs a dozen operations for a designated packet, and two additions for any
//! other packet.

use super::count::Count;
use super::meter::Meter;
use super::newcomers::Newcomers;
use super::params::Params;
use super::share::{Port, Redistribution, Usage, gain};
use crate::parameter::Reading;
use crate::rate::aggregate::Reports;
use crate::units::{Bytes, Rate, Span, Time};

/// Minimum of the mean time between reports, seconds. Because of this minimum, T_q (the time to drain the queue) is
/// never zero.
const MEAN_MIN: f64 = 1e-4;
/// Weight of a new report in the mean time between reports (BDR-21).
const MEAN_WEIGHT: f64 = 1.0 / 16.0;
/// Minimum time between two expiries of the timer.
const TICK_MIN: Span = Span::from_millis(1);
/// Minimum time over which literal mode measures the used bandwidth (BDR-26), seconds.
const USED_MIN: f64 = 0.01;
/// A port is idle if the estimated number of flows is below this limit. The comparison uses the number before it is
/// raised to at least 1.
const NOBODY: f64 = 0.5;

/// The report of a designated packet (BDR-2, BDR-6, BDR-20).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The packet is a SYN, so a flow begins and `t_rep` is zero.
    pub syn: bool,
    /// The packet carries the flow's last report.
    pub fin: bool,
    /// The packet carries the flow's first report after the SYN. A router without a flow table cannot recognise this
    /// report, so an unused flag bit of BDR-6 marks it.
    pub first_data: bool,
    /// Time since the sender sent this flow's previous designated packet.
    pub t_rep: Span,
    /// Number of packets from the previous designated packet up to, but not including, this one. Used only in literal
    /// mode.
    pub size_cwin: u32,
    /// Time in which the flow sent its last window and received the ACKs for it. Used only in literal mode.
    pub time_per_cwin: Span,
    /// Size of the flow's full packets, L3 bytes. Used only in literal mode.
    pub packet_size: Bytes,
}

/// A router's recommendation to a flow.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Recommendation {
    /// Send at this rate, L3 bytes/s (BDR-25).
    Rate(Rate),
    /// Add this many packets to the window (equation (3), BDR-26).
    Gain(i32),
}

impl Recommendation {
    /// Returns the new recommendation of a packet that arrived with `field`: the smaller of `field` and this
    /// recommendation (BDR-3). Routers of both modes on one path are a configuration error. In this case, the packet
    /// keeps the first recommendation.
    pub fn stamp(self, field: Option<Recommendation>) -> Recommendation {
        match (field, self) {
            (Some(Recommendation::Rate(theirs)), Recommendation::Rate(ours)) => {
                Recommendation::Rate(theirs.min(ours))
            }
            (Some(Recommendation::Gain(theirs)), Recommendation::Gain(ours)) => {
                Recommendation::Gain(theirs.min(ours))
            }
            (Some(theirs), _) => theirs,
            (None, ours) => ours,
        }
    }
}

/// BDR at one port.
#[derive(Clone, Debug)]
pub struct Law {
    params: Params,
    /// C, the capacity of the link.
    capacity: Rate,
    /// q: the L3 bytes that were queued at the last reading.
    queued: Bytes,
    /// The limit of the queue, if there is one.
    buffer: Option<Bytes>,
    count: Count,
    newcomers: Newcomers,
    meter: Meter,
    redistribution: Redistribution,
    /// Mean time between reports, seconds; `None` before the first report.
    mean: Option<f64>,
    ticked_at: Time,
    /// The time from the last expiry of the timer to the next expiry.
    wait: Span,
}

impl Law {
    /// Returns the law for a port of this capacity with [valid](crate::rate::PortParameters::check) parameters.
    pub fn new(params: Params, capacity: Rate, now: Time) -> Self {
        let mut law = Law {
            capacity,
            queued: Bytes::ZERO,
            buffer: None,
            count: Count::new(&params, now),
            newcomers: Newcomers::new(now),
            meter: Meter::default(),
            redistribution: Redistribution::default(),
            mean: None,
            ticked_at: now,
            wait: TICK_MIN,
            params,
        };
        law.wait = law.period();
        law
    }

    /// Counts the bytes that the port has sent since the last call: `own` of BDR flows, and `other` of all other
    /// flows (BDR-42).
    pub fn on_bytes(&mut self, own: Bytes, other: Bytes) {
        self.meter.count(own, other);
    }

    /// Handles a designated packet that is about to join the queue (BDR-41). The queue holds `queued` bytes, and
    /// `queue_limit` is its limit in bytes. The caller writes the result into the packet with
    /// [`Recommendation::stamp`].
    pub fn on_report(
        &mut self,
        now: Time,
        report: &Report,
        queued: Bytes,
        queue_limit: Option<Bytes>,
    ) -> Recommendation {
        let (literal, tau) = (self.is_literal(), self.tau());
        let said = if literal { report.time_per_cwin } else { report.t_rep };
        let said = said.min(self.params.t_rep_max).as_secs_f64();
        self.count.report(now, said, tau);
        self.learn_mean(said, 1);
        if report.first_data {
            self.newcomers.on_first_data(now, tau, 1);
        }
        if report.syn {
            self.newcomers.on_syns(now, tau, 1);
        }
        self.observe(queued, queue_limit);
        if literal {
            let available = self.capacity.as_f64() - self.meter.used();
            let (size, packet) = (f64::from(report.size_cwin), report.packet_size.as_f64());
            // The conversion truncates towards zero (BDR-26) and saturates.
            Recommendation::Gain(gain(available, self.flows(now), size, said, packet) as i32)
        } else {
            Recommendation::Rate(self.rate(now))
        }
    }

    /// Handles the sums of the reports since the last call, as if all reports had arrived now (resolved mode only). The
    /// data plane limits the time of each report to `t_rep_max`. `lived` may contain parts of reports that `number`
    /// does not count yet, so the mean is also limited to `t_rep_max`.
    pub fn on_reports(&mut self, now: Time, reports: &Reports, queued: Bytes, queue_limit: Option<Bytes>) {
        let (tau, lived) = (self.tau(), reports.lived.as_secs_f64());
        self.count.report(now, lived, tau);
        if reports.number > 0 {
            let mean = (lived / reports.number as f64).min(self.params.t_rep_max.as_secs_f64());
            self.learn_mean(mean, reports.number);
        }
        self.newcomers.on_first_data(now, tau, reports.first);
        self.newcomers.on_syns(now, tau, reports.syns);
        self.observe(queued, queue_limit);
    }

    /// Called when the deadline of [`next`](Law::next) has passed or the capacity has changed. A new capacity takes
    /// effect at once (BDR-43).
    pub fn on_timer(&mut self, now: Time, capacity: Rate, queued: Bytes, queue_limit: Option<Bytes>) {
        self.capacity = capacity;
        self.observe(queued, queue_limit);
        if now < self.next() {
            return;
        }
        let (elapsed, mean, tau) = (now.since(self.ticked_at).as_secs_f64(), self.mean(), self.tau());
        self.meter.sample(elapsed, mean);
        // The number of timer periods that have elapsed, plus 0.5, so that the conversion below rounds to the nearest
        // integer. `wait` is never zero.
        let waits = elapsed / self.wait.as_secs_f64() + 0.5;
        self.newcomers.age(now, tau, waits as usize);
        if self.params.redistribution && !self.is_literal() {
            let usage = Usage {
                used: self.utilisation(),
                eta: self.params.eta,
                threshold: self.params.u_threshold,
                queue: self.has_queue(),
                idle: self.count.read(now, tau) < NOBODY,
            };
            let step = self.params.redistribution_step;
            self.redistribution.on_timer(now, elapsed, mean, step, &usage);
        }
        self.ticked_at = now;
        self.wait = self.period();
    }

    /// Returns the time at which [`on_timer`](Law::on_timer) must be called next.
    pub fn next(&self) -> Time {
        self.ticked_at + self.wait
    }

    /// Returns the number of flows among which the law divides the capacity. In resolved mode the number is at least
    /// 1 and includes newcomers (BDR-21, BDR-22). In literal mode the number is the result of equation (1).
    pub fn flows(&self, now: Time) -> f64 {
        let tau = self.tau();
        let counted = self.count.read(now, tau);
        if self.is_literal() {
            return counted;
        }
        counted.max(1.0) + if self.params.anticipation { self.newcomers.excess(now, tau) } else { 0.0 }
    }

    /// Returns the present rate of each flow, L3 bytes/s: B_fair times g (BDR-23, BDR-24). In literal mode the rate is
    /// C / N, which is another interpretation of the paper's recommendation (BDR-D3).
    pub fn rate(&self, now: Time) -> Rate {
        self.share_of(self.flows(now))
    }

    /// Returns the rate that each flow would get if `more` flows joined.
    pub fn rate_with(&self, now: Time, more: u64) -> Rate {
        let counted = self.count.read(now, self.tau()).max(0.0);
        let excess = self.flows(now) - counted.max(1.0);
        self.share_of((counted + more as f64).max(1.0) + excess.max(0.0))
    }

    fn share_of(&self, flows: f64) -> Rate {
        if self.is_literal() {
            return Rate::from_f64(self.capacity.as_f64() / flows.max(1.0));
        }
        let port = Port {
            capacity: self.capacity.as_f64(),
            eta: self.params.eta,
            background: self.meter.background(),
            queued: self.queued.as_f64(),
            drain: self.drain(),
        };
        Rate::from_f64(port.share(flows, self.redistribution.factor()))
    }

    /// Returns the new rate field of a packet that arrived with `field` (BDR-3, BDR-25).
    pub fn stamp(&self, now: Time, field: Option<Rate>) -> Rate {
        self.rate(now).min(field.unwrap_or(Rate::MAX))
    }

    /// Returns the last known capacity C.
    pub fn capacity(&self) -> Rate {
        self.capacity
    }

    /// Returns the factor g of BDR-24, for traces.
    pub fn redistribution(&self) -> f64 {
        self.redistribution.factor()
    }

    /// Returns the measured utilisation u, for traces. Without capacity, u is 1.
    pub fn utilisation(&self) -> f64 {
        let capacity = self.capacity.as_f64();
        if capacity > 0.0 { self.meter.load() / capacity } else { 1.0 }
    }

    /// Returns y_bg, the rate of flows without BDR, for traces.
    pub fn background(&self) -> Rate {
        Rate::from_f64(self.meter.background())
    }

    /// Returns the mean time between a flow's reports, for traces.
    pub fn mean_report(&self) -> Span {
        Span::from_secs_f64(self.mean())
    }

    /// Passes the names and values of the state to `trace`. Rates are in bytes/s, and times are in seconds.
    pub fn trace(&self, now: Time, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("flows", self.flows(now));
        trace("share", self.rate(now).as_f64());
        trace("redistribution", self.redistribution());
        trace("utilisation", self.utilisation());
        trace("background", self.background().as_f64());
        trace("mean_report", self.mean_report().as_secs_f64());
    }

    fn is_literal(&self) -> bool {
        self.params.mode == Reading::Literal
    }

    fn mean(&self) -> f64 {
        self.mean.unwrap_or(self.params.t_rep_initial.as_secs_f64()).max(MEAN_MIN)
    }

    fn tau(&self) -> f64 {
        self.params.tau(self.mean())
    }

    /// Returns T_q, the time to drain the queue, seconds.
    fn drain(&self) -> f64 {
        (self.params.t_q_factor * self.mean()).max(MEAN_MIN)
    }

    /// Updates the mean time between reports with `reports` new reports, whose mean is `said` seconds. The first report
    /// sets the mean.
    fn learn_mean(&mut self, said: f64, reports: u64) {
        if said > 0.0 {
            let mean = self.mean.unwrap_or(said);
            let weight = 1.0 - libm::pow(1.0 - MEAN_WEIGHT, reports as f64);
            self.mean = Some(mean + weight * (said - mean));
        }
    }

    fn observe(&mut self, queued: Bytes, queue_limit: Option<Bytes>) {
        (self.queued, self.buffer) = (queued, queue_limit);
        if self.has_queue() {
            self.redistribution.end();
        }
    }

    /// Returns whether the queue is above its threshold (BDR-24), which is a share of the queue's limit. If the queue
    /// has no limit, the law uses the bytes that the link sends in T_q as the limit (ours).
    fn has_queue(&self) -> bool {
        let buffer = self.buffer.map_or_else(|| self.capacity.as_f64() * self.drain(), Bytes::as_f64);
        self.queued.as_f64() > self.params.queue_threshold * buffer
    }

    /// Returns half the mean time between reports (BDR-43). In literal mode, returns half the measuring time of
    /// BDR-26.
    fn period(&self) -> Span {
        let whole = if self.is_literal() { self.mean().max(USED_MIN) } else { self.mean() };
        Span::from_secs_f64(whole / 2.0).max(TICK_MIN)
    }
}
