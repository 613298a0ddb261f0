//! Makes the flows of a plan, with their transports and applications.

use narrows_control::catalogue::Choice;
use narrows_control::parameter::{Value as BaseValue, Values};
use narrows_control::units::{Bytes, Rate, Time};
use narrows_plan::{
    AppPlan, CATALOGUE_PREFIX, FlowEnd, FlowPlan, ProgramPlan, Protocol, SizePlan, StackPlan, TransportPlan,
};

use super::entries::Entry;
use super::graph::Graph;
use super::parameters::{Known, in_base_units};
use super::{Settings, indices, links};
use crate::data::measured;
use crate::error::{Error, Result, found, found_text, one_of};
use crate::files::{Files, join};
use crate::model::{
    self, App, Distribution, Flow, MAX_FLOWS, Program, SizeDistribution, Transport, shell, stacks,
};
use crate::scenario::Scenario;
use crate::units::{BitRate, NANOS_PER_SEC, Span, format_duration, format_rate};
use crate::value::Value;
use crate::value::python::six_digits;

/// Bytes of a packet that QUIC can send over every path (RFC 9000, section 14). It is the unit of `receive_window` for
/// QUIC.
const QUIC_PACKET: u64 = 1200;
/// Maximum number of packets of a UDP flow or group. A simulation of this many packets takes about an hour.
const MAX_UDP_PACKETS: u128 = 10_000_000_000;
/// Default port of the server of a plan's flow 0, on real stacks. The default for flow n is this port plus n.
pub const FIRST_PORT: usize = 20_000;

/// Returns the congestion controller: its name, and its parameters in base units.
///
/// # Errors
/// Returns an error if the flow sets a parameter that its controller lacks, or if a value is outside the parameter's
/// range.
fn congestion(flow: &Flow, settings: &Settings<'_>, key: &str) -> Result<Choice> {
    let (name, params) = (&flow.cc.name, &flow.cc.params);
    let choice = |params| Choice { name: name.clone(), params };
    let Some((given, _)) = params.first() else { return Ok(choice(Values::new())) };
    let Some(known) = stacks::catalogue_name(flow.transport.word(), name) else {
        let message = format!(
            "found a parameter of {}'s own {name}, expected none (cc = '{CATALOGUE_PREFIX}{name}' is Narrows' own \
             controller)",
            flow.transport.word()
        );
        return Err(Error::new(message, format!("{key}.{given}")));
    };
    if let Some((row, _)) = settings.catalogue.find(known) {
        let known: Known = row.parameters().map(|(name, parameter, _)| (name, parameter.shape)).collect();
        return Ok(choice(in_base_units(params, &known, row.name, key)?));
    }
    // The controller is a user's class. The class itself checks names and ranges of its parameters.
    let mut values = Values::new();
    for (name, value) in params {
        let base = match value {
            Value::Bool(flag) => BaseValue::Flag(*flag),
            Value::Text(text) => BaseValue::Word(text.clone().into()),
            other => BaseValue::Number(other.as_number().ok_or_else(|| {
                let message = format!("found {}, expected a number, a string, true or false", found(value));
                Error::new(message, format!("{key}.{name}"))
            })?),
        };
        values.insert(name.clone(), base);
    }
    Ok(choice(values))
}

/// Returns TCP, UDP, an external stack or programs.
///
/// # Errors
/// Returns an error if a parameter is wrong, or if a UDP flow would send too many packets.
fn transport(
    number: usize,
    flow: &Flow,
    duration: Span,
    key: &str,
    folder: &str,
    settings: &Settings<'_>,
) -> Result<TransportPlan> {
    let cc_key = format!("{key}.cc");
    if let Some(program) = &flow.program {
        let cc = match program.protocol {
            model::Protocol::Tcp => Some(congestion(flow, settings, &cc_key)?),
            model::Protocol::Udp => None,
        };
        return plan_of_program(program, cc, number, folder, key, settings.files);
    }
    Ok(match flow.transport {
        Transport::Udp => {
            let rate = flow.rate.unwrap_or_default();
            let bytes = rate.in_bytes();
            let (count, packet) = (u128::from(flow.count), u128::from(flow.packet));
            let sent = count * u128::from(bytes.as_bytes_per_sec()) * u128::from(duration.as_nanos());
            let packets = sent / (packet * u128::from(NANOS_PER_SEC));
            if packets > MAX_UDP_PACKETS {
                let rate = format_rate(rate);
                let message =
                    format!("found {rate} ({packets} packets), expected at most {MAX_UDP_PACKETS} packets");
                return Err(Error::new(message, format!("{key}.rate")));
            }
            TransportPlan::Udp { rate: bytes, packet: flow.packet }
        }
        Transport::Quinn => TransportPlan::Stack(StackPlan {
            name: flow.transport.word().to_owned(),
            cc: congestion(flow, settings, &cc_key)?,
            receive_window: flow.receive_window.map(|packets| Bytes::new(u64::from(packets) * QUIC_PACKET)),
        }),
        Transport::Tcp => TransportPlan::Tcp {
            cc: congestion(flow, settings, &cc_key)?,
            ecn: flow.ecn,
            pacing: flow.pacing,
            receive_window: flow.receive_window,
            mss: flow.mss,
            initial_window: flow.initial_window,
        },
    })
}

/// Returns the programs with all values that a run needs.
fn plan_of_program(
    program: &Program,
    cc: Option<Choice>,
    number: usize,
    folder: &str,
    key: &str,
    files: &dyn Files,
) -> Result<TransportPlan> {
    let words = |command: &str| shell::split(command).unwrap_or_default();
    let port = match program.port {
        Some(port) => port,
        None => u16::try_from(FIRST_PORT + number).map_err(|_| {
            let message =
                format!("found nothing, expected a port, because the default of flow {number} is no port");
            Error::new(message, format!("{key}.program.port"))
        })?,
    };
    Ok(TransportPlan::Program(ProgramPlan {
        server: words(&program.server),
        client: words(&program.client),
        protocol: match program.protocol {
            model::Protocol::Tcp => Protocol::Tcp,
            model::Protocol::Udp => Protocol::Udp,
        },
        port,
        client_at: match program.client_at {
            model::FlowEnd::From => FlowEnd::From,
            model::FlowEnd::To => FlowEnd::To,
        },
        cc,
        files: paths(program, folder, &format!("{key}.program.files"), files)?,
    }))
}

/// Returns the absolute paths of the programs' files.
fn paths(program: &Program, folder: &str, key: &str, files: &dyn Files) -> Result<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    let file_name = |path: &str| path.rsplit('/').next().unwrap_or("").to_owned();
    for (number, name) in program.files.iter().enumerate() {
        let path = files.find(&join(folder, name)).ok_or_else(|| {
            let message = format!("found {}, expected an existing file or folder", found_text(name));
            Error::new(message, format!("{key}.{number}"))
        })?;
        let last = file_name(&path);
        if found.iter().any(|other| file_name(other) == last) {
            let message = format!("found two files with the name {last}, expected different names");
            return Err(Error::new(message, key));
        }
        found.push(path);
    }
    Ok(found)
}

/// Returns the traffic of the application.
///
/// # Errors
/// Returns an error if too many flows would arrive.
fn app(flow: &Flow, duration: Span, key: &str) -> Result<AppPlan> {
    if let Some(arrivals) = &flow.arrivals {
        let span = flow.stop.unwrap_or(duration) - flow.start;
        let expected = arrivals.rate * span.as_nanos() as f64 / NANOS_PER_SEC as f64;
        if expected > f64::from(MAX_FLOWS) {
            let rate = six_digits(arrivals.rate);
            let message = format!(
                "found {rate} flows per second ({expected:.0} in all), expected at most {MAX_FLOWS} in all"
            );
            return Err(Error::new(message, format!("{key}.arrivals.rate")));
        }
        return Ok(AppPlan::Poisson { per_sec: arrivals.rate, size: size(&arrivals.size) });
    }
    if let Some(requests) = &flow.requests {
        return Ok(AppPlan::Requests {
            size: size(&requests.size),
            parallel: requests.parallel,
            count: requests.count,
            think: requests.think,
        });
    }
    if let Some(bytes) = flow.size {
        return Ok(AppPlan::Size { bytes });
    }
    if let Some(limit) = &flow.app {
        return limited(limit, &format!("{key}.app"));
    }
    Ok(AppPlan::Bulk)
}

/// Returns an application with a rate.
///
/// # Errors
/// Returns an error if the changes of the rate are out of order.
fn limited(app: &App, key: &str) -> Result<AppPlan> {
    if let Some(rate) = app.rate
        && app.at.is_empty()
    {
        return Ok(AppPlan::Limited { rate: rate.in_bytes(), on: app.on, off: app.off });
    }
    let in_bytes = |rate: Option<BitRate>| rate.map(BitRate::in_bytes);
    let timed = app.at.iter().filter(|change| change.when.is_none());
    let timed: Vec<(Span, Option<Rate>)> =
        timed.map(|change| (change.time.unwrap_or_default(), in_bytes(change.rate))).collect();
    if !timed.is_sorted_by_key(|(at, _)| *at) {
        return Err(Error::new("found changes out of order, expected rising times", format!("{key}.at")));
    }
    Ok(AppPlan::Scheduled { steps: links::steps(in_bytes(app.rate), timed.into_iter()) })
}

fn size(size: &SizeDistribution) -> SizePlan {
    let given = size.mean.map(Bytes::as_f64);
    if let Some(measured) = measured(size.distribution.word()) {
        return SizePlan::Empirical { points: measured.scaled(given) };
    }
    // For all other distributions, the check of the scenario requires a mean.
    let mean = given.unwrap_or(0.0);
    match size.distribution {
        Distribution::Exponential => SizePlan::Exponential { mean },
        Distribution::Pareto => SizePlan::Pareto { mean, shape: size.shape },
        _ => SizePlan::Fixed { bytes: mean },
    }
}

/// Returns the plan of a flow.
pub(super) fn flow(
    scenario: &Scenario,
    settings: &Settings<'_>,
    graph: &Graph<'_>,
    number: usize,
    entry: &Entry,
    name: String,
) -> Result<FlowPlan> {
    let (flow, key) = (&entry.flow, entry.key());
    let (from, to) = ends(graph, entry).map_err(|error| entry.misplaced(error))?;
    let duration = scenario.duration;
    if flow.start >= duration {
        let found = found_text(&format_duration(flow.start));
        let message = format!("found {found}, expected less than the duration");
        return Err(Error::new(message, format!("{key}.start")));
    }
    let spread = flow.spacing.as_nanos().saturating_mul(u64::from(flow.count) - 1);
    let last = flow.start + Span::from_nanos(spread);
    for (which, value, added) in
        [("spacing", flow.spacing, Span::ZERO), ("start_jitter", flow.start_jitter, flow.start_jitter)]
    {
        if last + added >= duration {
            let message = format!(
                "found {} (the last flow would start at {}), expected all to start within the duration",
                found_text(&format_duration(value)),
                format_duration(last + added)
            );
            return Err(Error::new(message, format!("{key}.{which}")));
        }
    }
    let stack = flow.transport.word();
    if flow.is_stack() && !settings.kernel.is_empty() {
        let message =
            format!("found {stack}, expected --on sim, because this stack runs only in the simulator");
        return Err(Error::new(message, format!("{key}.transport")));
    }
    let known = &settings.congestion_controllers;
    if let Some(cc) = stacks::catalogue_name(stack, &flow.cc.name)
        && !known.is_empty()
        && !known.iter().any(|name| name == cc)
    {
        return Err(Error::new(unknown_congestion(flow, settings), format!("{key}.cc")));
    }
    let return_path = return_path(graph, flow, (from, to), &key)?;
    Ok(FlowPlan {
        name,
        from: from as u32,
        to: to as u32,
        return_path,
        start: Time::ZERO + flow.start,
        stop: flow.stop.filter(|stop| *stop < duration).map(|stop| Time::ZERO + stop),
        count: flow.count,
        spacing: flow.spacing,
        start_jitter: flow.start_jitter,
        class: flow.class_,
        service: flow.service,
        transport: transport(number, flow, duration, &key, scenario.folder(), settings)?,
        app: app(flow, duration, &key)?,
    })
}

/// Returns the flow's sending and receiving nodes.
fn ends(graph: &Graph<'_>, entry: &Entry) -> Result<(usize, usize)> {
    let count = graph.endpoints.len().max(1);
    let (usual_from, usual_to) = graph.endpoints.get(entry.index % count).map(|(a, b)| (a, b)).unzip();
    let end = |given: &Option<String>, usual: Option<&String>, which: &str| {
        let key = entry.end(which);
        match given.as_ref().or(usual) {
            Some(name) => graph.end(name, &key),
            None => Err(Error::new("found nothing, expected a node", key)),
        }
    };
    let from = end(&entry.from, usual_from, "from")?;
    let to = end(&entry.to, usual_to, "to")?;
    if from == to {
        let name = graph.nodes.get(to).map_or("", String::as_str);
        let message = format!("found {}, expected another node than from", found_text(name));
        return Err(Error::new(message, entry.end("to")));
    }
    Ok((from, to))
}

fn return_path(
    graph: &Graph<'_>,
    flow: &Flow,
    (from, to): (usize, usize),
    key: &str,
) -> Result<Option<Vec<u32>>> {
    let Some(names) = &flow.return_path else { return Ok(None) };
    let nodes = names.iter().enumerate().map(|(j, name)| graph.node(name, &format!("{key}.return_path.{j}")));
    let nodes: Vec<usize> = nodes.collect::<Result<_>>()?;
    if nodes.first() != Some(&to) || nodes.last() != Some(&from) {
        let end = |name: Option<&String>| name.cloned().unwrap_or_default();
        let (first, last) = (end(names.first()), end(names.last()));
        let message =
            format!("found a path from {first} to {last}, expected nodes from the receiver to the sender");
        return Err(Error::new(message, format!("{key}.return_path")));
    }
    Ok(Some(indices(&nodes)))
}

/// Returns the message about an unknown congestion controller.
///
/// If a kernel offers the controllers, the message lists all names, because a kernel has few. Suggesting only the most
/// similar name (`bbr` for `bbr3`) would look like the correction of a typing error, although the simulator has both
/// controllers.
fn unknown_congestion(flow: &Flow, settings: &Settings<'_>) -> String {
    let name = flow.cc.name.as_str();
    let (found, known) = (found_text(name), &settings.congestion_controllers);
    if !settings.kernel.is_empty() {
        if stacks::class_file(name).is_some() {
            return format!(
                "found {found}, expected --on sim, because Python classes run only in the simulator"
            );
        }
        return format!("found {found}, expected one that {} has: {}", settings.kernel, known.join(", "));
    }
    if let Some((owner, _)) = stacks::STACKS.iter().find(|(_, names)| names.contains(&name)) {
        return format!("found {found}, which is a controller of {owner}, expected one of Narrows");
    }
    let own = stacks::controllers(flow.transport.word()).iter().copied();
    let message =
        one_of(name, own.chain(known.iter().map(String::as_str)), "a congestion controller", "congestion");
    // These words end the message if no known name is similar.
    let is_listed = message.ends_with(" has them");
    if is_listed { message + " (FILE.py:CLASS is a controller of your own)" } else { message }
}
