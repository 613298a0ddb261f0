//! Checks plans. A plan that passes the check cannot cause a panic.

use narrows_control::catalogue::{Catalogue, Choice, Controllers, Problem};
use narrows_control::feedback::header::Custom;
use narrows_control::parameter::Value;
use narrows_control::units::{Bytes, Rate, Span, Time};

use crate::engine::MAX_INDEX;
use crate::error::Error;
use crate::packet::RATE_OPTION_BYTES;
use crate::plan::{
    AppPlan, ChangePlan, FlowPlan, LinkPlan, LossPlan, MarkPlan, Plan, ProgramPlan, Protocol, QueuePlan,
    RatePlan, SizePlan, StackPlan, TransportPlan,
};
use crate::transport::{FlowSetup, NoTransports, Transport, Transports};
use crate::world::build_rate_controller;

/// Longest duration of a run. The event queue stores times in 64 bits (nanoseconds) and numbers the events with 36
/// bits. A longer run could exceed these ranges.
const MAX_DURATION: Span = Span::from_secs(1_000_000);
/// Largest delay and jitter of a link.
const MAX_DELAY: Span = Span::from_secs(1_000);
/// Largest initial window, packets.
const MAX_INITIAL_WINDOW_PACKETS: u32 = 10_000;
/// Smallest MSS. A segment of this size has room for data, the longest congestion header and the rate option.
const MIN_MSS_BYTES: u32 = 64;
const _: () = assert!(MIN_MSS_BYTES > Custom::MAX_BYTES as u32 + RATE_OPTION_BYTES);
/// Largest number of parallel requests of a flow.
const MAX_PARALLEL: u32 = 1_000;
/// Largest sum of the `count`s of all flow plans.
const MAX_FLOWS: u64 = 10_000_000;

/// Checks every value and reference of a plan.
///
/// # Errors
/// Returns the first invalid value.
pub fn check(plan: &Plan) -> Result<(), Error> {
    check_with(plan, Catalogue::built_in())
}

/// Like [`check`], but accepts the congestion controllers in `controllers` instead of the built-in controllers.
///
/// # Errors
/// Returns the first invalid value.
pub fn check_with(plan: &Plan, controllers: &dyn Controllers) -> Result<(), Error> {
    check_parts(plan, controllers, &NoTransports)
}

/// Like [`check_with`], but for runs on real network stacks. In these runs, a flow may also be an external program.
///
/// # Errors
/// Returns the first invalid value.
pub fn check_for_real_stacks(plan: &Plan, controllers: &dyn Controllers) -> Result<(), Error> {
    check_parts(plan, controllers, &RealStacks)
}

/// The transports of runs on real stacks: the kernel's TCP and UDP, and external programs.
struct RealStacks;

impl Transports for RealStacks {
    fn check(&self, stack: &StackPlan, controllers: &dyn Controllers) -> Result<(), Problem> {
        NoTransports.check(stack, controllers)
    }

    fn build(&self, _setup: FlowSetup<'_>) -> Option<Box<dyn Transport>> {
        None
    }

    fn has_programs(&self) -> bool {
        true
    }
}

/// Like [`check_with`], but also accepts the stacks in `transports`.
pub(crate) fn check_parts(
    plan: &Plan,
    controllers: &dyn Controllers,
    transports: &dyn Transports,
) -> Result<(), Error> {
    require(
        "duration",
        plan.duration,
        plan.duration > Span::ZERO && plan.duration <= MAX_DURATION,
        "above 0, at most 1e6 s",
    )?;
    require("warmup", plan.warmup, plan.warmup < plan.duration, "less than the duration")?;
    require(
        "nodes",
        plan.nodes.len(),
        !plan.nodes.is_empty() && plan.nodes.len() < 1 << 16,
        "1 to 65535 nodes",
    )?;
    let links = plan.links.len();
    require("links", links, links < MAX_INDEX as usize, &format!("fewer than {MAX_INDEX} links"))?;
    for (i, link) in plan.links.iter().enumerate() {
        check_link(plan, &format!("links[{i}] ({})", link.name), link)?;
    }
    let mut total = 0u64;
    for (i, flow) in plan.flows.iter().enumerate() {
        check_flow(plan, &format!("flows[{i}] ({})", flow.name), flow, controllers, transports)?;
        total += flow.count as u64;
    }
    require("flows", total, total <= MAX_FLOWS, "at most 10 million flows")?;
    check_triggers(plan, transports)?;
    for (i, c) in plan.rate_controllers.iter().enumerate() {
        let what = format!("rate_controllers[{i}].link");
        require(&what, c.link, (c.link as usize) < plan.links.len(), "the index of a link")?;
        let is_duplicate = plan.rate_controllers[..i].iter().any(|o| o.link == c.link);
        require(&what, c.link, !is_duplicate, "a link without another controller")?;
        if let Some(steps) = &c.shape {
            check_steps(&format!("rate_controllers[{i}].shape"), steps)?;
        }
        check_intervals(&format!("rate_controllers[{i}].outages"), &c.outages)?;
        let requirements = build_rate_controller(c, i as u32, controllers)?.requirements();
        let is_vlan = c.params.get("share") == Some(&Value::Word("vlan".into()));
        let expected = "another share: simulated packets have no VLAN";
        require(&format!("rate_controllers[{i}].params.share"), "vlan", !is_vlan, expected)?;
        let is_configured = c.capacity_is_configured;
        require(
            &format!("rate_controllers[{i}].told"),
            is_configured,
            is_configured || !requirements.configured_capacity,
            "true: this kind cannot measure the capacity",
        )?;
        let needs_sdn = plan.sdn.is_none() && requirements.domain;
        require(
            &format!("rate_controllers[{i}].kind"),
            &c.kind,
            !needs_sdn,
            "an [sdn] controller in the plan",
        )?;
    }
    if let Some(sdn) = &plan.sdn {
        let poll = sdn.poll.unwrap_or(Span::from_millis(100));
        require("sdn.poll", poll, poll >= Span::from_micros(10), "at least 10 us")?;
        check_intervals("sdn.outages", &sdn.outages)?;
    }
    if let Some(capture) = &plan.capture {
        for &l in &capture.links {
            require("capture.links", l, (l as usize) < plan.links.len(), "the index of a link")?;
        }
        for &n in &capture.hosts {
            require("capture.hosts", n, (n as usize) < plan.nodes.len(), "the index of a node")?;
        }
        let snap = capture.snap;
        require("capture.snap", snap, (64..=65_535).contains(&snap), "64 to 65535 bytes")?;
    }
    for &l in &plan.probes.links {
        require("probes.links", l, (l as usize) < plan.links.len(), "the index of a link")?;
    }
    for &flow in &plan.probes.acks {
        let found = plan.flows.get(flow as usize);
        let is_tcp = found.is_some_and(|f| matches!(f.transport, TransportPlan::Tcp { .. }));
        require("probes.acks", flow, is_tcp, "the index of a TCP flow")?;
    }
    let rows = plan.probes.ack_rows;
    require("probes.ack_rows", rows, rows >= 2, "at least 2")?;
    let i = plan.probes.interval;
    require("probes.interval", i, i == Span::ZERO || i >= Span::from_micros(10), "0 or at least 10 us")
}

fn check_link(plan: &Plan, at: &str, link: &LinkPlan) -> Result<(), Error> {
    check_ends(plan, at, link.from, link.to)?;
    match &link.rate {
        RatePlan::Steps { steps, period } => {
            check_steps(&format!("{at}.rate"), steps)?;
            if let (Some(p), Some(last)) = (period, steps.last()) {
                let is_valid = *p >= Span::from_micros(100) && Time::ZERO + *p > last.0;
                require(
                    &format!("{at}.rate.period"),
                    p,
                    is_valid,
                    "at least 100 us, and longer than the start of the last step",
                )?;
            }
        }
        RatePlan::Opportunities { millis, period_millis, bytes } => {
            let ordered = !millis.is_empty() && millis.windows(2).all(|w| w[0] <= w[1]);
            require(
                &format!("{at}.rate.millis"),
                format_args!("{} times", millis.len()),
                ordered,
                "at least one time, none below the one before it",
            )?;
            let is_valid = *period_millis > 0 && millis.last().is_some_and(|m| m <= period_millis);
            require(
                &format!("{at}.rate.period_millis"),
                period_millis,
                is_valid,
                "above 0, and at least the last time of the trace",
            )?;
            require(&format!("{at}.rate.bytes"), bytes, *bytes > 0, "above 0")?;
        }
    }
    check_steps(&format!("{at}.delay"), &link.delay)?;
    let longest = link.delay.iter().map(|d| d.1).max().unwrap_or(Span::ZERO);
    require(&format!("{at}.delay"), longest, longest <= MAX_DELAY, "at most 1000 s")?;
    let jitter = link.jitter.as_ref().map_or(Span::ZERO, |j| j.max);
    require(&format!("{at}.jitter.max"), jitter, jitter <= MAX_DELAY, "at most 1000 s")?;
    let steps = format_args!("{} steps", link.jitter_changes.len());
    let is_valid = is_ordered(&link.jitter_changes);
    require(&format!("{at}.jitter_changes"), steps, is_valid, "steps in order of time")?;
    let largest = link.jitter_changes.iter().map(|(_, jitter)| jitter.max).max().unwrap_or(Span::ZERO);
    require(&format!("{at}.jitter_changes"), largest, largest <= MAX_DELAY, "at most 1000 s")?;
    if let Some(interval) = link.aggregation {
        let is_valid = interval > Span::ZERO && interval <= MAX_DELAY;
        require(&format!("{at}.aggregation"), interval, is_valid, "above 0, and at most 1000 s")?;
    }
    if let Some(policer) = &link.policer {
        require(&format!("{at}.policer.rate"), policer.rate, policer.rate > Rate::ZERO, "above 0")?;
        let expected = "at least a full packet, 1500 bytes";
        require(&format!("{at}.policer.burst"), policer.burst, policer.burst.get() >= 1500, expected)?;
    }
    require(&format!("{at}.duplicate"), link.duplicate, is_probability(link.duplicate), "0 to 1")?;
    let steps = format_args!("{} steps", link.loss.len());
    require(&format!("{at}.loss"), steps, is_ordered(&link.loss), "steps in order of time")?;
    for (_, loss) in &link.loss {
        check_loss(&format!("{at}.loss"), loss)?;
    }
    check_queue(&format!("{at}.queue"), &link.queue)
}

fn check_triggers(plan: &Plan, transports: &dyn Transports) -> Result<(), Error> {
    let is_valid = plan.triggers.is_empty() || !transports.has_programs();
    let expected = "none, because real stacks do not report phases";
    require("triggers", plan.triggers.len(), is_valid, expected)?;
    for (i, trigger) in plan.triggers.iter().enumerate() {
        let at = format!("triggers[{i}]");
        let is_valid = plan.flows.get(trigger.flow as usize).is_some_and(FlowPlan::has_phases);
        require(&format!("{at}.flow"), trigger.flow, is_valid, "the index of a single TCP flow")?;
        require(&format!("{at}.visit"), trigger.visit, trigger.visit > 0, "at least 1")?;
        match trigger.change {
            ChangePlan::App { flow, .. } => {
                let app = plan.flows.get(flow as usize).map(|flow| &flow.app);
                let is_valid = matches!(app, Some(AppPlan::Scheduled { .. }));
                require(&format!("{at}.change.flow"), flow, is_valid, "the index of a flow with a schedule")?;
            }
            ChangePlan::Link { link, rate, delay, ref loss, ref jitter } => {
                let found = plan.links.get(link as usize);
                require(&format!("{at}.change.link"), link, found.is_some(), "the index of a link")?;
                let has_steps =
                    found.is_some_and(|link| matches!(link.rate, RatePlan::Steps { period: None, .. }));
                let is_valid = rate.is_none() || has_steps;
                require(&format!("{at}.change.rate"), rate, is_valid, "none: the link's rate is a trace")?;
                let jitter = jitter.as_ref().map_or(Span::ZERO, |jitter| jitter.max);
                let longest = delay.unwrap_or(Span::ZERO).max(jitter);
                require(&format!("{at}.change"), longest, longest <= MAX_DELAY, "delays of at most 1000 s")?;
                loss.as_ref().map_or(Ok(()), |loss| check_loss(&format!("{at}.change.loss"), loss))?;
            }
        }
    }
    Ok(())
}

fn check_loss(at: &str, loss: &LossPlan) -> Result<(), Error> {
    let is_valid = match *loss {
        LossPlan::Bernoulli { p } => is_probability(p),
        LossPlan::GilbertElliott { p, r, good, bad } => [p, r, good, bad].into_iter().all(is_probability),
    };
    require(at, loss, is_valid, "probabilities from 0 to 1")
}

/// Checks the nodes at both ends of a link or flow.
fn check_ends(plan: &Plan, at: &str, from: u32, to: u32) -> Result<(), Error> {
    let is_node = |n: u32| (n as usize) < plan.nodes.len();
    let is_valid = is_node(from) && is_node(to) && from != to;
    require(&format!("{at}.from, to"), format_args!("{from}, {to}"), is_valid, "two different nodes")
}

fn check_flow(
    plan: &Plan,
    at: &str,
    flow: &FlowPlan,
    controllers: &dyn Controllers,
    transports: &dyn Transports,
) -> Result<(), Error> {
    check_ends(plan, at, flow.from, flow.to)?;
    if let Some(path) = &flow.return_path {
        let joins = path.first() == Some(&flow.to) && path.last() == Some(&flow.from);
        let is_valid = joins && path.iter().all(|&n| (n as usize) < plan.nodes.len());
        require(&format!("{at}.return_path"), path, is_valid, "nodes from the receiver to the sender")?;
    }
    let stop = flow.stop.is_none_or(|s| s > flow.start);
    require(&format!("{at}.stop"), flow.stop.unwrap_or(Time::NEVER), stop, "after the start")?;
    require(&format!("{at}.count"), flow.count, flow.count > 0, "at least 1")?;
    let is_valid = flow.start_jitter == Span::ZERO || !matches!(flow.app, AppPlan::Poisson { .. });
    require(&format!("{at}.start_jitter"), flow.start_jitter, is_valid, "0 for a Poisson source")?;
    match &flow.transport {
        TransportPlan::Tcp { cc, mss, receive_window, initial_window, .. } => {
            check_congestion(&format!("{at}.cc"), cc, controllers)?;
            let is_valid = (MIN_MSS_BYTES..=60_000).contains(mss);
            require(&format!("{at}.mss"), mss, is_valid, &format!("{MIN_MSS_BYTES} to 60000 bytes"))?;
            let window = receive_window.unwrap_or(1);
            require(&format!("{at}.receive_window"), window, window > 0, "at least 1 segment")?;
            let is_valid = (1..=MAX_INITIAL_WINDOW_PACKETS).contains(initial_window);
            let expected = format!("1 to {MAX_INITIAL_WINDOW_PACKETS} packets");
            require(&format!("{at}.initial_window"), initial_window, is_valid, &expected)?;
        }
        TransportPlan::Udp { rate, packet } => {
            let size = (28..=60_000).contains(packet);
            require(&format!("{at}.packet"), packet, size, "28 to 60000 bytes")?;
            // The time between two packets must not be zero. Otherwise the simulated time would not advance.
            let gap = rate.time_for(Bytes::new(*packet as u64));
            let is_valid = *rate > Rate::ZERO && gap > Span::ZERO;
            require(&format!("{at}.rate"), rate, is_valid, "above 0, at most a packet per nanosecond")?;
            let bulk = matches!(flow.app, AppPlan::Bulk);
            require(&format!("{at}.app"), &flow.app, bulk, "bulk: UDP supports no other application")?;
        }
        TransportPlan::Stack(stack) => {
            let window = stack.receive_window.unwrap_or(Bytes::new(1));
            let is_valid = window > Bytes::ZERO;
            require(&format!("{at}.receive_window"), window, is_valid, "at least 1 byte")?;
            transports.check(stack, controllers).map_err(|problem| invalid(at, problem))?;
        }
        TransportPlan::Program(program) => {
            let known = transports.has_programs();
            require(&format!("{at}.program"), "a program", known, "none: programs need real stacks")?;
            check_program(at, flow, program, controllers)?;
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
        AppPlan::Scheduled { steps } => check_steps(&format!("{at}.app.steps"), steps),
        AppPlan::Poisson { per_sec, size } => {
            require(&format!("{at}.count"), flow.count, flow.count == 1, "1 for a Poisson source")?;
            let rate = per_sec.is_finite() && *per_sec > 0.0 && *per_sec <= 1e7;
            require(&format!("{at}.arrivals.per_sec"), per_sec, rate, "above 0, at most 1e7")?;
            check_size(&format!("{at}.arrivals.size"), size)
        }
        AppPlan::Requests { size, parallel, count, .. } => {
            let has_streams = matches!(flow.transport, TransportPlan::Stack(_));
            require(
                &format!("{at}.app"),
                "requests",
                has_streams,
                "a transport with streams, such as quinn",
            )?;
            let is_valid = (1..=MAX_PARALLEL).contains(parallel);
            require(&format!("{at}.requests.parallel"), parallel, is_valid, &format!("1 to {MAX_PARALLEL}"))?;
            let count = count.unwrap_or(1);
            require(&format!("{at}.requests.count"), count, count > 0, "at least 1")?;
            check_size(&format!("{at}.requests.size"), size)
        }
    }
}

fn check_size(what: &str, size: &SizePlan) -> Result<(), Error> {
    let (is_valid, expected) = match size {
        SizePlan::Fixed { bytes } => (is_size(*bytes), "at least 1 byte"),
        SizePlan::Exponential { mean } => (is_size(*mean), "a mean of at least 1 byte"),
        SizePlan::Pareto { mean, shape } => (
            is_size(*mean) && shape.is_finite() && *shape > 1.0,
            "a mean of at least 1 byte, a shape above 1",
        ),
        SizePlan::Empirical { points } => {
            (is_distribution(points), "rising sizes, and rising shares from 0 to 1")
        }
    };
    require(what, size, is_valid, expected)
}

fn check_program(
    at: &str,
    flow: &FlowPlan,
    program: &ProgramPlan,
    controllers: &dyn Controllers,
) -> Result<(), Error> {
    require(&format!("{at}.count"), flow.count, flow.count == 1, "1 for a program")?;
    let is_bulk = matches!(flow.app, AppPlan::Bulk);
    require(&format!("{at}.app"), &flow.app, is_bulk, "bulk: the program is the application")?;
    for (key, words) in [("server", &program.server), ("client", &program.client)] {
        require(&format!("{at}.program.{key}"), words, !words.is_empty(), "at least one word")?;
    }
    require(&format!("{at}.program.port"), program.port, program.port > 0, "above 0")?;
    let is_valid = program.cc.is_none() || program.protocol == Protocol::Tcp;
    require(
        &format!("{at}.cc"),
        &program.cc,
        is_valid,
        "none: UDP has no congestion controller of the kernel",
    )?;
    program.cc.as_ref().map_or(Ok(()), |cc| check_congestion(&format!("{at}.cc"), cc, controllers))
}

fn is_size(bytes: f64) -> bool {
    bytes.is_finite() && bytes >= 1.0
}

/// Returns whether the points define a distribution; see [`SizePlan::Empirical`].
fn is_distribution(points: &[(f64, f64)]) -> bool {
    let rises = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1;
    let [Some(first), Some(last)] = [points.first(), points.last()] else { return false };
    first.0 >= 0.0 && last.0.is_finite() && [first.1, last.1] == [0.0, 1.0] && points.windows(2).all(rises)
}

fn check_congestion(at: &str, choice: &Choice, controllers: &dyn Controllers) -> Result<(), Error> {
    controllers.check(choice).map_err(|problem| invalid(at, problem))
}

/// Converts a problem into an error. If the problem names a parameter, the error names this parameter of `at`.
/// Otherwise the error names the key `at`.
fn invalid(at: &str, problem: Problem) -> Error {
    let key = problem.parameter.map_or_else(|| at.to_owned(), |name| format!("{at}.{name}"));
    Error::invalid(key, problem.found, problem.expected)
}

fn check_queue(at: &str, queue: &QueuePlan) -> Result<(), Error> {
    match queue {
        QueuePlan::Fifo { mark: MarkPlan::Red { min, max, max_p, weight, .. }, .. } => {
            let is_valid = *min >= 0.0
                && max > min
                && max.is_finite()
                && is_probability(*max_p)
                && *weight > 0.0
                && *weight <= 1.0;
            require(
                at,
                format_args!("min {min}, max {max}, max_p {max_p}, weight {weight}"),
                is_valid,
                "0 <= min < max, 0 <= max_p <= 1, 0 < weight <= 1",
            )
        }
        QueuePlan::Fifo { .. } => Ok(()),
        QueuePlan::Codel { target, interval, .. } => check_codel(at, *target, *interval),
        QueuePlan::FqCodel { target, interval, queues, .. } => {
            require(&format!("{at}.queues"), queues, (1..=1 << 20).contains(queues), "1 to 1048576")?;
            check_codel(at, *target, *interval)
        }
        QueuePlan::Priority { classes } => {
            let number = classes.len();
            require(&format!("{at}.classes"), number, (1..=256).contains(&number), "1 to 256 classes")
        }
        QueuePlan::Htb { classes } => {
            require(
                &format!("{at}.classes"),
                classes.len(),
                (1..=256).contains(&classes.len()),
                "1 to 256 classes",
            )?;
            let least = classes.iter().map(|c| c.ceil).min().unwrap_or(Rate::ZERO);
            require(&format!("{at}.classes.ceil"), least, least > Rate::ZERO, "above 0")
        }
    }
}

fn check_codel(at: &str, target: Span, interval: Span) -> Result<(), Error> {
    let is_valid = interval >= Span::from_micros(1) && target <= interval;
    require(
        at,
        format_args!("target {target:?}, interval {interval:?}"),
        is_valid,
        "an interval of at least 1 us, and a target of at most the interval",
    )
}

fn check_steps<T>(at: &str, steps: &[(Time, T)]) -> Result<(), Error> {
    let is_valid = !steps.is_empty() && steps[0].0 == Time::ZERO && is_ordered(steps);
    let found = format_args!("{} steps", steps.len());
    require(at, found, is_valid, "at least one step, in order of time, the first at 0")
}

fn check_intervals(at: &str, intervals: &[(Time, Time)]) -> Result<(), Error> {
    let is_valid = intervals.iter().all(|(a, b)| a < b) && intervals.windows(2).all(|w| w[0].1 <= w[1].0);
    require(at, intervals, is_valid, "intervals (from, to) in order of time, without overlap")
}

fn is_ordered<T>(steps: &[(Time, T)]) -> bool {
    steps.windows(2).all(|w| w[0].0 < w[1].0)
}

fn is_probability(p: f64) -> bool {
    (0.0..=1.0).contains(&p)
}

fn require(what: &str, found: impl std::fmt::Debug, is_valid: bool, expected: &str) -> Result<(), Error> {
    if is_valid { Ok(()) } else { Err(Error::invalid(what, format!("{found:?}"), expected)) }
}
