//! Starts a switch: loads the program, builds the queues, fills the ports' records, attaches the program to the
//! interfaces, and connects to the SDN controller.

use narrows_control::rate::aggregate::Aggregated;
use narrows_control::rate::{LEAVES, Leaf, PortCounters};
use narrows_control::units::{Bytes, Rate, Time};
use nix::net::if_::if_indextoname;

use super::controlled::Controlled;
use super::interfaces::{Interface, Interfaces, PLAIN};
use super::pins;
use super::{Runner, UNCONFIRMED_MIN};
use crate::clock;
use crate::config;
use crate::dataplane::layout::{self, WireFormat};
use crate::dataplane::ports::Port as Record;
use crate::htb::{self, Htb, Rtnl};
use crate::services::{Failure, Services};
use crate::switch::core::{Port, Switch};
use crate::switch::link::{Link, PortDescription};
use crate::switch::messages::Messages;
use crate::switch::reports::Reported;
use crate::switch::view::Meters;

/// If an interface of the list no longer exists, returns an error with its name.
fn missing_interface(interfaces: &[(String, u32)]) -> Option<Failure> {
    // nix 0.31 returns an empty name if there is no such interface.
    let is_there = |index: u32| if_indextoname(index).is_ok_and(|name| !name.is_empty());
    let (name, _) = interfaces.iter().find(|(_, index)| !is_there(*index))?;
    Some(format!("{name}: the interface no longer exists").into())
}

impl Runner {
    /// Loads the program, builds the queues, and attaches the program to all existing interfaces.
    ///
    /// # Errors
    /// If the kernel refuses, if no port has an existing interface, or if the SDN controller's keys cannot be read.
    pub fn start(config: &config::Switch, services: &mut Services) -> Result<Runner, Failure> {
        let mut interfaces = Vec::new();
        Self::build(config, services, &mut interfaces)
            .map_err(|error| missing_interface(&interfaces).unwrap_or(error))
    }

    /// Does the work of [`start`](Runner::start). Adds existing interfaces to `found`, even if it fails later.
    fn build(
        config: &config::Switch,
        services: &mut Services,
        found: &mut Vec<(String, u32)>,
    ) -> Result<Runner, Failure> {
        let mut interfaces = Interfaces::new()?;
        let mut rtnl = Rtnl::open()?;
        let plane;
        (plane, interfaces.pins) = pins::load(config, &mut rtnl)?;
        let life = interfaces.life();
        let (mut ports, mut cores, mut descriptions) = (Vec::new(), Vec::new(), Vec::new());
        for (number, port) in (0u8..).zip(&config.ports) {
            let link = existing(&mut rtnl, &port.interface, found)?;
            interfaces.all.push(Interface::new(&port.interface, number));
            let mtu = port.mtu.unwrap_or(Bytes::new(u64::from(link.as_ref().map_or(1500, |link| link.mtu))));
            let mut controlled = Controlled::new(port, mtu, life);
            if let Some(link) = &link {
                controlled.take(link, &mut rtnl, &mut services.guardian)?;
            }
            let capacity = controlled.capacity;
            let mut controller = port.rate_controller(u32::from(number), mtu)?;
            let counters =
                PortCounters { capacity, limit_packets: [port.limit; LEAVES], ..PortCounters::default() };
            let record = plane.ports.get(number).ok_or("too many ports")?;
            record.set_unconfirmed_max(UNCONFIRMED_MIN);
            prepare(&record, config, &mut *controller);
            // A pinned record still has an earlier agent's counts. Record these counts, so that only later reports are
            // counted.
            controlled.reported = Reported::of(&record.counters());
            cores.push(Port::new(controller, counters));
            ports.push(controlled);
            descriptions.push(PortDescription {
                port: u32::from(number),
                interface: link.unwrap_or_else(|| htb::Link::missing(&port.interface)),
                capacity: capacity.unwrap_or(Rate::ZERO),
                rate_controller: port.rate_controller.clone(),
                params: port.params.clone(),
                thresholds: port.thresholds(mtu),
            });
        }
        // Without any port, the configuration is probably for another machine.
        if let (true, Some(port)) = (found.is_empty(), config.ports.first()) {
            return Err(htb::Error::NoInterface(port.interface.clone()).into());
        }
        for name in &config.interfaces {
            existing(&mut rtnl, name, found)?;
            interfaces.all.push(Interface::new(name, PLAIN));
        }
        let record = plane.ports.get(PLAIN).ok_or("too many ports")?;
        prepare_plain(&record, config);
        if let Some(pins) = &interfaces.pins {
            plane.forget_other_interfaces(
                pins.folder(),
                &found.iter().map(|(_, index)| *index).collect::<Vec<_>>(),
            )?;
        }
        for interface in &mut interfaces.all {
            if let Some((_, index)) = found.iter().find(|(name, _)| interface.is_called(name)) {
                interface.attach(&plane, interfaces.pins.as_ref(), *index)?;
            }
        }
        let link = match &config.controller {
            Some(controller) => Some(Link::start(controller, descriptions)?),
            None => None,
        };
        let messages = Messages::open();
        if cores.iter().any(|core| core.controller.sends_messages()) {
            messages.check()?;
        }
        let mut runner = Runner {
            switch: Switch::new(plane, cores),
            interfaces,
            ports,
            link,
            messages,
            meters: Meters::default(),
            tick: config.tick,
            config: config.clone(),
            started: clock::now(),
            times: Default::default(),
            asked: Vec::new(),
            services_at: Time::ZERO,
        };
        let now = runner.refresh(&mut services.guardian)?;
        runner.switch.start(now, &mut runner.asked);
        runner.carry_out()?;
        runner.publish_grants(now);
        // Publish the first snapshot before a reader can connect.
        services.board.publish(runner.snapshot(now, false));
        Ok(runner)
    }
}

/// Looks up an interface, and adds it to `found` if it exists. A missing interface is used when it appears.
fn existing(
    rtnl: &mut Rtnl,
    name: &str,
    found: &mut Vec<(String, u32)>,
) -> Result<Option<htb::Link>, htb::Error> {
    match rtnl.ethernet(name) {
        Ok(link) => {
            found.push((name.to_owned(), link.index));
            Ok(Some(link))
        }
        Err(htb::Error::NoInterface(_)) => {
            tracing::warn!(
                event = "interface-missing",
                interface = name,
                "the agent takes it when it appears"
            );
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Writes a controlled port's settings into its record.
pub(super) fn prepare(record: &Record<'_>, config: &config::Switch, controller: &mut dyn Aggregated) {
    record.set_format(match config.format {
        config::Format::Padding => WireFormat::Padding,
        config::Format::Reserved => WireFormat::Reserved,
        config::Format::Insert => WireFormat::Insert,
    });
    record.set_priorities([Leaf::Mouse, Leaf::Elephant, Leaf::OtherTcp, Leaf::Udp].map(Htb::priority));
    let once = match config.feedback {
        config::Feedback::EveryAck => 0,
        config::Feedback::OncePerRtt => layout::MODE_ONCE_PER_RTT,
    };
    // Keep the present policing of UDP until the rate controller sets UDP's rate.
    let udp = if record.polices_udp() { layout::MODE_POLICE_UDP } else { 0 };
    if let Some(counter) = controller.report_counter() {
        record.set_report_max(counter.report_max());
    }
    let messages = if controller.sends_messages() { layout::MODE_MESSAGES } else { 0 };
    let mode = layout::MODE_CONTROLLED | layout::MODE_POLICE_SYN | udp | once | messages;
    record.set_mode(mode | common_mode(config));
    record.set_watchdog(config.watchdog);
    record.beat(clock::now());
}

/// Writes the settings into the record of all uncontrolled interfaces.
pub(super) fn prepare_plain(record: &Record<'_>, config: &config::Switch) {
    record.set_mode(common_mode(config));
    record.set_watchdog(config.watchdog);
    record.beat(clock::now());
}

/// Returns the mode flags of all ports, controlled or not. All records have the same flags, so that both directions of
/// a flow get the same key.
fn common_mode(config: &config::Switch) -> u32 {
    let routed = match config.vlans {
        config::Vlans::Separate => 0,
        config::Vlans::Routed => layout::MODE_VLANS_ROUTED,
    };
    let gtp = if config.gtp { layout::MODE_OPEN_GTP } else { 0 };
    routed | gtp
}
