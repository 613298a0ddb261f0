//! The last line of defence: a plan that passes here cannot make a run panic.

use narrows_control::congestion;
use narrows_control::units::{Bytes, Rate, Span, Time};

use crate::engine::MAX_INDEX;
use crate::error::Error;
use crate::plan::{
    AppPlan, FlowPlan, LinkPlan, LossPlan, MarkPlan, Plan, QueuePlan, RatePlan, SizePlan, TransportPlan,
};
use crate::world::{Controllers, build_rate_controller};

/// Longest run: the clock counts nanoseconds in 64 bits, and 36 bits count events.
const MAX_DURATION: Span = Span::from_secs(1_000_000);
/// Most flows of one group or at one time.
const MAX_FLOWS: u64 = 10_000_000;

impl Plan {
    /// Checks every figure and reference.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), Error> {
        self.check_with(&congestion::registry::build)
    }

    /// As [`Plan::check`], with the congestion controllers that the run will have.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check_with(&self, controllers: Controllers<'_>) -> Result<(), Error> {
        require(
            "duration",
            self.duration,
            self.duration > Span::ZERO && self.duration <= MAX_DURATION,
            "above 0, at most 1e6 s",
        )?;
        require("warmup", self.warmup, self.warmup < self.duration, "less than the duration")?;
        require(
            "nodes",
            self.nodes.len(),
            !self.nodes.is_empty() && self.nodes.len() < 1 << 16,
            "1 to 65535 nodes",
        )?;
        require("links", self.links.len(), self.links.len() < MAX_INDEX as usize, "fewer links")?;
        for (i, link) in self.links.iter().enumerate() {
            self.check_link(&format!("links[{i}] ({})", link.name), link)?;
        }
        let mut total = 0u64;
        for (i, flow) in self.flows.iter().enumerate() {
            self.check_flow(&format!("flows[{i}] ({})", flow.name), flow, controllers)?;
            total += flow.count as u64;
        }
        require("flows", total, total <= MAX_FLOWS, "at most 10 million flows")?;
        for (i, c) in self.controllers.iter().enumerate() {
            let what = format!("controllers[{i}].link");
            require(&what, c.link, (c.link as usize) < self.links.len(), "the index of a link")?;
            let twice = self.controllers[..i].iter().any(|o| o.link == c.link);
            require(&what, c.link, !twice, "one controller for a link")?;
            if let Some(steps) = &c.shape {
                check_steps(&format!("controllers[{i}].shape"), steps)?;
            }
            check_intervals(&format!("controllers[{i}].outages"), &c.outages)?;
            let controller = build_rate_controller(c, i as u32)?;
            let told = c.told || !controller.must_be_told();
            require(
                &format!("controllers[{i}].told"),
                c.told,
                told,
                "true: this kind has to be told the capacity",
            )?;
            let alone = self.sdn.is_none() && controller.needs_domain();
            require(&format!("controllers[{i}].kind"), &c.kind, !alone, "an sdn controller beside it")?;
        }
        if let Some(sdn) = &self.sdn {
            let poll = sdn.poll.unwrap_or(Span::from_millis(100));
            require("sdn.poll", poll, poll >= Span::from_micros(10), "at least 10 us")?;
            check_intervals("sdn.outages", &sdn.outages)?;
        }
        for &l in &self.probes.links {
            require("probes.links", l, (l as usize) < self.links.len(), "the index of a link")?;
        }
        let i = self.probes.interval;
        require("probes.interval", i, i == Span::ZERO || i >= Span::from_micros(10), "0 or at least 10 us")
    }

    fn check_link(&self, at: &str, link: &LinkPlan) -> Result<(), Error> {
        let nodes = self.nodes.len() as u32;
        let ends = link.from < nodes && link.to < nodes && link.from != link.to;
        require(
            &format!("{at}.from, to"),
            format!("{}, {}", link.from, link.to),
            ends,
            "two different nodes",
        )?;
        match &link.rate {
            RatePlan::Steps { steps, period } => {
                check_steps(&format!("{at}.rate"), steps)?;
                if let (Some(p), Some(last)) = (period, steps.last()) {
                    let long = *p >= Span::from_micros(100) && Time::ZERO + *p > last.0;
                    require(
                        &format!("{at}.rate.period"),
                        p,
                        long,
                        "longer than the last step's time, at least 100 us",
                    )?;
                }
            }
            RatePlan::Opportunities { millis, period_millis, bytes } => {
                let ordered = !millis.is_empty() && millis.windows(2).all(|w| w[0] <= w[1]);
                require(&format!("{at}.rate.millis"), millis.len(), ordered, "times that do not decrease")?;
                let long = *period_millis > 0 && millis.last().is_some_and(|m| m <= period_millis);
                require(&format!("{at}.rate.period_millis"), period_millis, long, "the last time or later")?;
                require(&format!("{at}.rate.bytes"), bytes, *bytes > 0, "above 0")?;
            }
        }
        let delays = !link.delay.is_empty() && link.delay[0].0 == Time::ZERO && ordered(&link.delay);
        require(&format!("{at}.delay"), link.delay.len(), delays, "steps in order of time, the first at 0")?;
        let long = link.delay.iter().all(|d| d.1 <= Span::from_secs(1_000));
        require(&format!("{at}.delay"), "a longer one", long, "at most 1000 s")?;
        let jitter = link.jitter.as_ref().map_or(Span::ZERO, |j| j.max);
        require(&format!("{at}.jitter.max"), jitter, jitter <= Span::from_secs(1_000), "at most 1000 s")?;
        require(&format!("{at}.duplicate"), link.duplicate, probability(link.duplicate), "0 to 1")?;
        require(&format!("{at}.loss"), link.loss.len(), ordered(&link.loss), "steps in order of time")?;
        for (_, loss) in &link.loss {
            let fine = match *loss {
                LossPlan::Bernoulli { p } => probability(p),
                LossPlan::GilbertElliott { p, r, good, bad } => {
                    [p, r, good, bad].into_iter().all(probability)
                }
            };
            require(&format!("{at}.loss"), format!("{loss:?}"), fine, "probabilities from 0 to 1")?;
        }
        check_queue(&format!("{at}.queue"), &link.queue)
    }

    fn check_flow(&self, at: &str, flow: &FlowPlan, controllers: Controllers<'_>) -> Result<(), Error> {
        let nodes = self.nodes.len() as u32;
        let ends = flow.from < nodes && flow.to < nodes && flow.from != flow.to;
        require(
            &format!("{at}.from, to"),
            format!("{}, {}", flow.from, flow.to),
            ends,
            "two different nodes",
        )?;
        if let Some(path) = &flow.return_path {
            let joins = path.first() == Some(&flow.to) && path.last() == Some(&flow.from);
            let fine = joins && path.iter().all(|&n| n < nodes);
            require(
                &format!("{at}.return_path"),
                format!("{path:?}"),
                fine,
                "nodes from the receiver to the sender",
            )?;
        }
        let stop = flow.stop.is_none_or(|s| s > flow.start);
        require(&format!("{at}.stop"), format!("{:?}", flow.stop), stop, "after the start")?;
        require(&format!("{at}.count"), flow.count, flow.count > 0, "at least 1")?;
        match &flow.transport {
            TransportPlan::Tcp { cc, mss, receive_window, .. } => {
                let known = controllers(cc).is_some();
                require(&format!("{at}.cc"), cc, known, "the name of a congestion controller")?;
                require(&format!("{at}.mss"), mss, (16..=60_000).contains(mss), "16 to 60000 bytes")?;
                let window = receive_window.unwrap_or(1);
                require(&format!("{at}.receive_window"), window, window > 0, "at least 1 segment")?;
            }
            TransportPlan::Udp { rate, packet } => {
                let size = (28..=60_000).contains(packet);
                require(&format!("{at}.packet"), packet, size, "28 to 60000 bytes")?;
                // Time must move from packet to packet.
                let gap = rate.time_for(Bytes::new(*packet as u64));
                let fine = *rate > Rate::ZERO && gap > Span::ZERO;
                require(&format!("{at}.rate"), rate, fine, "above 0, at most a packet per nanosecond")?;
                let bulk = matches!(flow.app, AppPlan::Bulk);
                require(&format!("{at}.app"), format!("{:?}", flow.app), bulk, "bulk, for UDP")?;
            }
        }
        match &flow.app {
            AppPlan::Bulk => Ok(()),
            AppPlan::Size { bytes } => require(&format!("{at}.size"), bytes, bytes.get() > 0, "above 0"),
            AppPlan::Limited { rate, on, .. } => {
                require(&format!("{at}.app.rate"), rate, *rate > Rate::ZERO, "above 0")?;
                let on = on.unwrap_or(Span::MAX);
                require(&format!("{at}.app.on"), on, on >= Span::from_micros(1), "at least 1 us")
            }
            AppPlan::Poisson { per_sec, size } => {
                require(&format!("{at}.count"), flow.count, flow.count == 1, "1 for a source of flows")?;
                let rate = per_sec.is_finite() && *per_sec > 0.0 && *per_sec <= 1e7;
                require(&format!("{at}.arrivals.per_sec"), per_sec, rate, "above 0, at most 1e7")?;
                let fine = match *size {
                    SizePlan::Fixed { bytes } => bytes.is_finite() && bytes >= 1.0,
                    SizePlan::Exponential { mean } => mean.is_finite() && mean >= 1.0,
                    SizePlan::Pareto { mean, shape } => {
                        mean.is_finite() && mean >= 1.0 && shape.is_finite() && shape > 1.0
                    }
                };
                require(
                    &format!("{at}.arrivals.size"),
                    format!("{size:?}"),
                    fine,
                    "a mean of at least 1 byte, a shape above 1",
                )
            }
        }
    }
}

fn check_queue(at: &str, queue: &QueuePlan) -> Result<(), Error> {
    match queue {
        QueuePlan::Fifo { mark: MarkPlan::Red { min, max, max_p, weight, .. }, .. } => {
            let fine = *min >= 0.0
                && max > min
                && max.is_finite()
                && probability(*max_p)
                && *weight > 0.0
                && *weight <= 1.0;
            require(
                at,
                format!("min {min}, max {max}, max_p {max_p}, weight {weight}"),
                fine,
                "0 <= min < max, probabilities",
            )
        }
        QueuePlan::Fifo { .. } => Ok(()),
        QueuePlan::Codel { target, interval, .. } => check_codel(at, *target, *interval),
        QueuePlan::FqCodel { target, interval, queues, .. } => {
            require(&format!("{at}.queues"), queues, (1..=1 << 20).contains(queues), "1 to 1048576")?;
            check_codel(at, *target, *interval)
        }
        QueuePlan::Priority { bands } => {
            require(&format!("{at}.bands"), bands.len(), (1..=256).contains(&bands.len()), "1 to 256 bands")
        }
        QueuePlan::Htb { classes } => {
            require(
                &format!("{at}.classes"),
                classes.len(),
                (1..=256).contains(&classes.len()),
                "1 to 256 classes",
            )?;
            let served = classes.iter().all(|c| c.ceil > Rate::ZERO);
            require(&format!("{at}.classes.ceil"), "0", served, "above 0")
        }
    }
}

fn check_codel(at: &str, target: Span, interval: Span) -> Result<(), Error> {
    let fine = interval >= Span::from_micros(1) && target <= interval;
    require(
        at,
        format!("target {target:?}, interval {interval:?}"),
        fine,
        "target <= interval, at least 1 us",
    )
}

fn check_steps(at: &str, steps: &[(Time, Rate)]) -> Result<(), Error> {
    let fine = !steps.is_empty() && steps[0].0 == Time::ZERO && ordered(steps);
    require(at, steps.len(), fine, "steps in order of time, the first at 0")
}

fn check_intervals(at: &str, intervals: &[(Time, Time)]) -> Result<(), Error> {
    let fine = intervals.iter().all(|(a, b)| a < b) && intervals.windows(2).all(|w| w[0].1 <= w[1].0);
    require(at, format!("{intervals:?}"), fine, "intervals (from, to) in order, without overlap")
}

fn ordered<T>(steps: &[(Time, T)]) -> bool {
    steps.windows(2).all(|w| w[0].0 < w[1].0)
}

fn probability(p: f64) -> bool {
    (0.0..=1.0).contains(&p)
}

fn require(what: &str, found: impl std::fmt::Debug, fine: bool, expected: &str) -> Result<(), Error> {
    if fine { Ok(()) } else { Err(Error::invalid(what, format!("{found:?}"), expected)) }
}
