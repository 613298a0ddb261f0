//! The tables `[switch]`, `[[ports]]` and `[controller]` of a configuration.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use narrows_control::parameter::{Value, Values};
use narrows_control::rate::aggregate::Aggregated;
use narrows_control::rate::{FlowKey, PortId, brf, registry};
use narrows_control::units::{Bytes, Rate, Span};
use toml::Table;

use crate::channel::KeyFiles;
use crate::clock;
use crate::dataplane::layout;

use super::reader::{Reader, one_of, share, text, texts, unit, whole, yes_no};
use super::{Common, common, interface, interfaces, params, path, plain_name, units};

/// Largest number of ports. In addition to the ports' records, the data plane has one record that all uncontrolled
/// interfaces share.
const PORTS_MAX: usize = layout::PORTS_MAX as usize - 1;

/// The default of `pin`.
const UNTIL_STOPPED: &str = "until-stopped";

/// Default share of the link for SYNs. A SYN has 40 to 100 bytes. At 100 Mbit/s, this share allows more than 2,500 new
/// connections per second.
const SYN_SHARE: f64 = 0.02;

/// Name of the parameter with the time of day at which the monotonic clock was zero. The parameter is set only when a
/// rate controller is built. If a file is read twice, the two configurations are therefore equal.
const TIME_OF_DAY: &str = "time_of_day";

/// A switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    /// Settings of every agent.
    pub common: Common,
    /// Time between two updates of the rate controllers.
    pub tick: Span,
    /// Largest number of flows of all ports together.
    pub max_flows: u32,
    /// The eBPF program stops writing rates if the agent has not run for this time.
    pub watchdog: Span,
    /// Meaning of VLAN tags.
    pub vlans: Vlans,
    /// Whether flows inside GTP-U are controlled like all other flows.
    pub gtp: bool,
    /// How rates are written into packets.
    pub format: Format,
    /// How often a flow gets its rate.
    pub feedback: Feedback,
    /// How long the program, its maps and the queues stay in the kernel.
    pub pin: Pin,
    /// Controlled ports.
    pub ports: Vec<Port>,
    /// Interfaces through which ACKs leave, but which are not controlled.
    pub interfaces: Vec<String>,
    /// The SDN controller.
    pub controller: Option<Controller>,
}

impl Switch {
    /// Returns whether the switch keeps records of flows. On one switch, either all rate controllers need records, or
    /// none.
    pub fn keeps_flows(&self) -> bool {
        !self.ports.iter().any(|port| port.counts_reports)
    }

    /// Returns the folder of the pinned program, maps and attachments.
    pub fn pins(&self) -> PathBuf {
        match &self.pin {
            Pin::In(folder) => folder.clone(),
            Pin::Never | Pin::UntilStopped | Pin::Always => {
                Path::new(crate::bpffs::AGENTS).join(&self.common.name)
            }
        }
    }
}

/// How long the data plane stays in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pin {
    /// The data plane stays until the agent ends for any reason.
    Never,
    /// The data plane stays until the agent is stopped. If the agent dies, the next agent takes over the flows. Kernels
    /// that cannot pin the data plane behave as with [`Pin::Never`].
    UntilStopped,
    /// The data plane stays until `narrows-agent clean` removes it.
    Always,
    /// As [`Pin::Always`], but pinned in this folder of a bpffs.
    In(PathBuf),
}

/// How a rate is written (`NRW_FORMAT_` of bpf/include/wire.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Format {
    /// The rate replaces the two NOPs before the timestamps (the paper's format). Senders need a program that restores
    /// the NOPs.
    Padding = 1,
    /// The switch writes the rate only if the receiver has reserved the option.
    Reserved = 2,
    /// The switch inserts the option. If the ACK already has a rate, the lower of the two rates stays.
    #[default]
    Insert = 3,
}

/// How often a flow gets its rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feedback {
    /// A flow gets its rate in every ACK.
    #[default]
    EveryAck,
    /// A flow gets its rate once per RTT, as in the paper. If two switches on a path write rates, the sender may apply
    /// the larger of the two rates.
    OncePerRtt,
}

/// Meaning of VLAN tags for the identity of flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Vlans {
    /// Flows of different VLANs may have the same addresses.
    #[default]
    Separate,
    /// This host routes between VLANs, so data and ACKs of a flow have different tags.
    Routed,
}

/// A controlled port.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// The interface's name.
    pub interface: String,
    /// Capacity of the link behind the port.
    pub capacity: Capacity,
    /// Rate of the port's shaper, only with [`Capacity::Measured`]. The rate controller does not use it.
    pub shape: Option<Rate>,
    /// Bytes that the link adds to an IP datagram (`htb::Layout::overhead`).
    pub overhead: u32,
    /// Bytes of headers between the Ethernet header and the flows' IP datagrams.
    pub encapsulation: u32,
    /// Limit of each leaf's queue, packets.
    pub limit: u32,
    /// Largest IP datagram; `None`: the interface's MTU.
    pub mtu: Option<Bytes>,
    /// The share of the link that SYNs may use.
    pub syn_share: f64,
    /// Name of the rate controller (`narrows_control::rate::registry`).
    pub(crate) rate_controller: String,
    /// Whether the rate controller needs the SDN controller.
    pub(crate) needs_controller: bool,
    /// Whether the rate controller counts designated packets and keeps no flows.
    pub(crate) counts_reports: bool,
    /// Parameters of the rate controller in base units.
    pub(crate) params: Values,
}

/// The capacity of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// A configured rate. It counts the bytes of each IP datagram plus the port's `overhead`.
    Known(Rate),
    /// The capacity is unknown and is measured (BRF-101).
    Measured,
}

/// The link to the SDN controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// Addresses of the controllers, each as `host:port`.
    pub addresses: Vec<String>,
    /// The keys of the channel. `None` is possible only if the controller is on this host.
    pub keys: Option<KeyFiles>,
    /// This switch's name on the channel.
    pub name: String,
}

impl Port {
    /// Returns the thresholds of congestion for the SDN controller. Returns `None` for a rate controller without
    /// thresholds.
    pub fn thresholds(&self, mtu: Bytes) -> Option<brf::congestion::Thresholds> {
        params::brf(&self.rate_controller, &self.params).map(|p| brf::congestion::Thresholds::of(&p, mtu))
    }

    /// Builds the port's rate controller. `mtu` is the largest IP datagram.
    ///
    /// # Errors
    /// If the port's parameters are invalid, which is impossible in a checked configuration.
    pub fn rate_controller(&self, port: PortId, mtu: Bytes) -> Result<Box<dyn Aggregated>, String> {
        let mut params = self.params.clone();
        if registry::find(&self.rate_controller).is_some_and(|entry| entry.parameter(TIME_OF_DAY).is_some()) {
            let clock = || Value::Number(clock::time_of_day_at_zero().as_nanos() as f64);
            params.entry(TIME_OF_DAY.to_owned()).or_insert_with(clock);
        }
        let controller = registry::build(&self.rate_controller, &params, port, mtu)
            .map_err(|problem| problem.to_string())?;
        controller.into_aggregated().ok_or_else(|| format!("{} needs each packet", self.rate_controller))
    }
}

pub(super) fn read(root: &Reader<'_>) -> Option<Switch> {
    let own = root.table("switch")?;
    let common = common(root, &own, "switch", 9471);
    let tick = own.get("tick", unit(units::span)).unwrap_or(Span::from_millis(10));
    let bounds = (Span::from_millis(1), Span::from_secs(1));
    if !(bounds.0..=bounds.1).contains(&tick) {
        own.problem("tick", format_args!("found {}, expected from 1ms to 1s", units::show_span(tick)));
    }
    let watchdog = own.get("watchdog", unit(units::span)).unwrap_or(Span::from_secs(1));
    if watchdog < least_watchdog(tick) {
        let least = units::show_span(least_watchdog(tick));
        let found = units::show_span(watchdog);
        own.problem("watchdog", format_args!("found {found}, expected at least three ticks, {least}"));
    }
    let max_flows = own.get("max_flows", whole(1, 4_194_304)).unwrap_or(131_072);
    let formats = [("insert", Format::Insert), ("reserved", Format::Reserved), ("padding", Format::Padding)];
    let format = own.get("format", one_of(&formats)).unwrap_or_default();
    let ways = [("every-ack", Feedback::EveryAck), ("once-per-rtt", Feedback::OncePerRtt)];
    let feedback = own.get("feedback", one_of(&ways)).unwrap_or_default();
    let meanings = [("separate", Vlans::Separate), ("routed", Vlans::Routed)];
    let vlans = own.get("vlans", one_of(&meanings)).unwrap_or_default();
    let gtp = own.get("gtp", yes_no).unwrap_or(false);
    let pin = own.get("pin", |v| match v {
        toml::Value::Boolean(true) => Ok(Pin::Always),
        toml::Value::Boolean(false) => Ok(Pin::Never),
        toml::Value::String(text) if text == UNTIL_STOPPED => Ok(Pin::UntilStopped),
        _ => path(v)
            .map(Pin::In)
            .map_err(|_| format!("true, false, {UNTIL_STOPPED:?} or an absolute path in a bpffs")),
    });
    let uncontrolled = own.get("interfaces", interfaces).unwrap_or_default();
    own.done();

    let tables = root.tables("ports");
    if tables.is_empty() || tables.len() > PORTS_MAX {
        let found = tables.len();
        root.problem("ports", format_args!("found {found}, expected from 1 to {PORTS_MAX} tables [[ports]]"));
    }
    let mut seen: BTreeSet<String> = uncontrolled.iter().cloned().collect();
    let ports = tables.into_iter().filter_map(|table| {
        let port = port(&table, max_flows);
        if let Some(port) = &port
            && !seen.insert(port.interface.clone())
        {
            let text = format!("found {:?}, which is named twice", port.interface);
            table.problem("interface", text);
        }
        table.done();
        port
    });
    let ports: Vec<Port> = ports.collect();
    // All ports share one program, so either all of them have slots for flows, or none.
    let differs = |port: &&Port| Some(port.counts_reports) != ports.first().map(|first| first.counts_reports);
    if let (Some(first), Some(port)) = (ports.first(), ports.iter().find(differs)) {
        let text = format!(
            "found {:?} and {:?}, expected bdr at all ports or at none, because a switch with bdr keeps no flows",
            first.rate_controller, port.rate_controller
        );
        root.problem("ports", text);
    }
    let given = root.table("controller");
    if let (None, Some(port)) = (&given, ports.iter().find(|port: &&Port| port.needs_controller)) {
        let text = format!(
            "found no table, expected [controller], because {} needs the SDN controller",
            port.rate_controller
        );
        root.problem("controller", text);
    }
    let controller = given.and_then(|table| controller(table, &common.name));
    Some(Switch {
        common,
        tick,
        max_flows,
        watchdog,
        vlans,
        gtp,
        format,
        feedback,
        pin: pin.unwrap_or(Pin::UntilStopped),
        ports,
        interfaces: uncontrolled,
        controller,
    })
}

/// Returns the smallest allowed value of `watchdog`. Even with this value, one late tick does not stop the eBPF program
/// from writing rates.
fn least_watchdog(tick: Span) -> Span {
    tick.scale(3, 1)
}

fn port(table: &Reader<'_>, max_flows: u32) -> Option<Port> {
    let interface = table.need("interface", |v| text(v).and_then(interface), "\"eth1\"");
    let measured = table.get("capacity", one_of(&[("measured", ())])).is_some();
    let capacity = match measured {
        true if table.value("rate").is_some() => {
            table.problem("rate", "found rate and capacity = \"measured\", expected only one of them");
            None
        }
        true => Some(Capacity::Measured),
        false => table.need("rate", unit(units::rate), "\"100mbit\"").map(Capacity::Known),
    };
    let shape = table.get("shape", unit(units::rate));
    if shape.is_some() && !measured {
        table.problem("shape", "found shape without capacity = \"measured\"; `rate` also shapes the port");
    }
    let overhead = table.get("overhead", whole(0, 256)).unwrap_or(14);
    let encapsulation = table.get("encapsulation", whole(0, 256)).unwrap_or(0);
    let limit = table.get("limit", unit(units::packets)).unwrap_or(1000);
    let mtu = table.get("mtu", unit(units::bytes));
    if let Some(mtu) = mtu
        && !(Bytes::new(576)..=Bytes::new(65_535)).contains(&mtu)
    {
        table.problem("mtu", format_args!("found {}, expected from 576B to 65535B", units::show_bytes(mtu)));
    }
    let syn_share = table.get("syn_share", share).unwrap_or(SYN_SHARE);
    if !(0.001..=1.0).contains(&syn_share) {
        let found = syn_share * 100.0;
        table.problem("syn_share", format_args!("found {found}%, expected from 0.1% to 100%"));
    }
    let rate_controller = table.get("rate_controller", text).unwrap_or_else(|| "brf".to_owned());
    let (params, needs_controller, counts_reports) =
        params(table, &rate_controller, max_flows, mtu.unwrap_or(Bytes::new(1500)), measured)
            .unwrap_or_default();
    let (interface, capacity) = (interface?, capacity?);
    Some(Port {
        interface,
        capacity,
        shape,
        overhead,
        encapsulation,
        limit,
        mtu,
        syn_share,
        rate_controller,
        needs_controller,
        counts_reports,
        params,
    })
}

/// Returns the parameters of a port's rate controller, whether it needs the SDN controller, and whether it counts
/// designated packets. Returns `None` if the name or a parameter is invalid.
fn params(
    table: &Reader<'_>,
    rate_controller: &str,
    max_flows: u32,
    mtu: Bytes,
    measured: bool,
) -> Option<(Values, bool, bool)> {
    let Some(alternatives) = params::KINDS.get(rate_controller) else {
        // The other rate controllers must process each packet, or need headers that no stock host sends. They run only
        // in the simulator.
        let kinds: Vec<_> = params::KINDS.keys().map(|kind| format!("{kind:?}")).collect();
        let kinds = kinds.join(", ");
        let text =
            format!("found {rate_controller:?}, which real switches do not support, expected one of {kinds}");
        table.problem("rate_controller", text);
        return None;
    };
    let given = table.get("params", |v| v.as_table().ok_or_else(|| "a table [ports.params]".into()));
    let no_params = Table::new();
    let mut params = params::in_base_units(rate_controller, given.unwrap_or(&no_params), |key, text| {
        table.problem(&format!("params.{key}"), text);
    })?;
    if measured && params.contains_key("udp_ceiling") {
        let text = "found udp_ceiling with capacity = \"measured\", expected `rate`: UDP borrows only with a configured capacity";
        table.problem("params.udp_ceiling", text);
    }
    for (key, given) in &params {
        if let Some(text) = params::unsupported(alternatives, key, given) {
            table.problem(&format!("params.{key}"), text);
            return None;
        }
    }
    params::set_defaults(rate_controller, max_flows, &mut params);
    match registry::build::<FlowKey>(rate_controller, &params, 0, mtu) {
        Err(problem) => {
            let key =
                problem.parameter.map_or("params".to_owned(), |parameter| format!("params.{parameter}"));
            table.problem(&key, format!("found {}, expected {}", problem.found, problem.expected));
            None
        }
        Ok(built) => {
            let requirements = built.requirements();
            if requirements.configured_capacity && measured {
                let text =
                    format!("found \"measured\", expected `rate`: {rate_controller} needs a configured rate");
                table.problem("capacity", text);
            }
            let counts_reports =
                built.into_aggregated().is_some_and(|mut controller| controller.report_counter().is_some());
            Some((params, requirements.domain, counts_reports))
        }
    }
}

fn controller(table: Reader<'_>, own_name: &str) -> Option<Controller> {
    let addresses = table.need("address", host_and_port, "\"127.0.0.1:6690\"");
    let keys = keys(&table);
    let name = table.get("name", |v| text(v).and_then(plain_name)).unwrap_or_else(|| own_name.to_owned());
    // An address shows whether the controller is on another host. A host name does not, because it may belong to this
    // host.
    let is_elsewhere = |a: &String| a.parse::<std::net::SocketAddr>().is_ok_and(|a| !a.ip().is_loopback());
    if addresses.iter().flatten().any(is_elsewhere) && keys == Some(None) {
        table.problem("key", "found nothing, expected a file, because the controller is on another host");
    }
    table.done();
    Some(Controller { addresses: addresses?, keys: keys?, name })
}

/// Reads one `host:port`, or a list of such texts.
fn host_and_port(value: &toml::Value) -> Result<Vec<String>, String> {
    let expected = "a host and port such as \"127.0.0.1:6690\", or a list of them";
    let one = value.as_str().map(|address| vec![address.to_owned()]);
    let fits = |address: &String| {
        let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
        port.is_some_and(|port| port.parse::<u16>().is_ok_and(|p| p != 0))
    };
    let addresses = one.or_else(|| texts(value).ok()).filter(|all| !all.is_empty() && all.iter().all(fits));
    addresses.ok_or_else(|| expected.to_owned())
}

/// Reads the files of the channel's keys, of which all or none must be given. Returns `None` if an error was recorded,
/// and `Some(None)` if no file is given.
fn keys(table: &Reader<'_>) -> Option<Option<KeyFiles>> {
    if table.value("secret_file").is_some() {
        let text = "found the secret of an earlier version, expected key, certificate and trusted: \
                    make them with 'narrows-agent key NAME'";
        table.problem("secret_file", text);
        return None;
    }
    let (key, certificate) = (table.get("key", path), table.get("certificate", path));
    match (key, certificate, table.get("trusted", path)) {
        (Some(key), Some(certificate), Some(trusted)) => Some(Some(KeyFiles { key, certificate, trusted })),
        (None, None, None) => Some(None),
        (key, certificate, _) => {
            let missing = if key.is_none() {
                "key"
            } else if certificate.is_none() {
                "certificate"
            } else {
                "trusted"
            };
            table.problem(missing, "found nothing, expected all or none of key, certificate, trusted");
            None
        }
    }
}
