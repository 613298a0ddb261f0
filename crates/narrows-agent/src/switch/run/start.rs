//! Starts a switch: program, queues, records, attachments, controller, in this order.

use std::collections::BTreeMap;
use std::path::Path;

use narrows_control::rate::{LEAVES, Leaf, PortCounters};
use narrows_control::units::{Bytes, Rate, Time};
use nix::net::if_::if_indextoname;

use super::controlled::Controlled;
use super::interfaces::{Interface, Interfaces, PLAIN};
use super::{Runner, UNCONFIRMED_MIN};
use crate::bpffs;
use crate::cli::{Failure, Services};
use crate::clock;
use crate::config;
use crate::dataplane::layout::{self, WireFormat};
use crate::dataplane::ports::Port as Record;
use crate::dataplane::program::{Sizes, Switch as Plane, Tunables};
use crate::htb::{self, Htb, Rtnl};
use crate::switch::core::{Port, Switch};
use crate::switch::link::{Link, PortDescription};
use crate::switch::view::Meters;

/// The name of an interface that no longer exists, if there is one.
fn missing_interface(interfaces: &[(String, u32)]) -> Option<Failure> {
    // nix 0.31 returns an empty name if there is no such interface.
    let is_there = |index: u32| if_indextoname(index).is_ok_and(|name| !name.is_empty());
    let (name, _) = interfaces.iter().find(|(_, index)| !is_there(*index))?;
    Some(format!("{name}: the interface no longer exists").into())
}

impl Runner {
    /// Loads the program, builds queues, attaches to all interfaces.
    ///
    /// # Errors
    /// If the kernel refuses, an interface does not exist, or the keys for the controller cannot be read.
    pub fn start(config: &config::Switch, services: &mut Services) -> Result<Runner, Failure> {
        let mut interfaces = Vec::new();
        Self::build(config, services, &mut interfaces)
            .map_err(|error| missing_interface(&interfaces).unwrap_or(error))
    }

    /// `found` lists the interfaces found, also if a later step fails.
    fn build(
        config: &config::Switch,
        services: &mut Services,
        found: &mut Vec<(String, u32)>,
    ) -> Result<Runner, Failure> {
        let mut interfaces = Interfaces::new(config.pin.clone())?;
        let mut rtnl = Rtnl::open()?;
        let plane = load(config, &mut rtnl)?;
        let (mut ports, mut cores, mut descriptions) = (Vec::new(), Vec::new(), Vec::new());
        for (number, port) in (0u8..).zip(&config.ports) {
            let link = existing(&mut rtnl, &port.interface, found)?;
            interfaces.all.push(Interface::new(&port.interface, number));
            let mtu = port.mtu.unwrap_or(Bytes::new(u64::from(link.as_ref().map_or(1500, |link| link.mtu))));
            let mut controlled = Controlled::new(port, mtu, config.pin.is_some());
            if let Some(link) = &link {
                controlled.take(link, &mut rtnl, &mut services.guardian)?;
            }
            let capacity = controlled.capacity;
            let counters =
                PortCounters { capacity, limit_packets: [port.limit; LEAVES], ..PortCounters::default() };
            cores.push(Port::new(port.rate_controller(u32::from(number), mtu)?, counters, mtu));
            ports.push(controlled);
            let record = plane.ports.get(number).ok_or("too many ports")?;
            record.set_unconfirmed_max(UNCONFIRMED_MIN);
            prepare(&record, config);
            descriptions.push(PortDescription {
                port: u32::from(number),
                interface: link.unwrap_or_else(|| htb::Link::missing(&port.interface)),
                capacity: capacity.unwrap_or(Rate::ZERO),
                controller: port.controller.clone(),
                params: port.params.clone(),
                thresholds: port.thresholds(mtu),
            });
        }
        // Without any of its ports, the configuration is probably another machine's.
        if let (true, Some(port)) = (found.is_empty(), config.ports.first()) {
            return Err(htb::Error::NoInterface(port.interface.clone()).into());
        }
        for name in &config.interfaces {
            existing(&mut rtnl, name, found)?;
            interfaces.all.push(Interface::new(name, PLAIN));
        }
        let record = plane.ports.get(PLAIN).ok_or("too many ports")?;
        prepare_plain(&record, config);
        if let Some(folder) = &config.pin {
            plane.forget_other_interfaces(
                folder,
                &found.iter().map(|(_, index)| *index).collect::<Vec<_>>(),
            )?;
        }
        for interface in &mut interfaces.all {
            if let Some((_, index)) = found.iter().find(|(name, _)| interface.is_called(name)) {
                interface.attach(&plane, config.pin.as_deref(), *index)?;
            }
        }
        let link = match &config.controller {
            Some(controller) => Some(Link::start(controller, descriptions)?),
            None => None,
        };
        let mut runner = Runner {
            switch: Switch::new(plane, cores),
            interfaces,
            ports,
            link,
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
        // Before the first reader can connect.
        services.board.publish(runner.snapshot(now, false));
        Ok(runner)
    }
}

/// An interface, if it exists, which is then added to `found`. A missing one is taken when it appears.
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
            tracing::warn!(event = "interface-missing", interface = name, "it is taken when it appears");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// A new data plane, or a pinned one of an earlier agent.
fn load(config: &config::Switch, rtnl: &mut Rtnl) -> Result<Plane, Failure> {
    let sizes = Sizes { flows: config.max_flows, ..Sizes::default() };
    let tunables = Tunables::default();
    match &config.pin {
        Some(folder) if folder.join("program").exists() => {
            let plane = Plane::open_pinned(folder)?;
            let wanted: Vec<_> = config.ports.iter().map(|port| port.interface.as_str()).collect();
            match port_mismatch(&plane.controlled()?, &wanted, &rtnl.links()?) {
                Some(text) => {
                    let problems = vec![config::Problem { key: "ports".into(), text }];
                    Err(config::Invalid { source: folder.display().to_string(), problems }.into())
                }
                None => {
                    report_kept_size(config.max_flows, plane.slots.len());
                    Ok(plane)
                }
            }
        }
        Some(folder) => {
            check_hidden(folder)?;
            let plane = Plane::load(sizes, tunables)?;
            plane.pin(folder)?;
            Ok(plane)
        }
        None => Ok(Plane::load(sizes, tunables)?),
    }
}

/// A pinned table keeps its size.
fn report_kept_size(wanted: u32, pinned: u32) {
    if wanted != pinned {
        let advice =
            "the pinned table keeps its size; to change it, stop the agent and run narrows-agent clean";
        tracing::warn!(event = "max-flows-kept", wanted, pinned, "{advice}");
    }
}

/// Refuses a folder where another mount hides the pinned data plane of an earlier agent, because two programs would
/// then write into each packet.
fn check_hidden(folder: &Path) -> Result<(), Failure> {
    let text = match bpffs::is_hidden(&folder.join("program")) {
        Ok(false) => return Ok(()),
        Ok(true) => format!(
            "found a pinned data plane that a second mount at {} hides, expected one mount \
             (narrows-agent clean removes what is hidden)",
            bpffs::PATH
        ),
        Err(error) if bpffs::covered().is_ok_and(|covered| covered > 0) => format!(
            "found several mounts at {}, and looking below the upper one failed ({error}); expected one mount \
             (run narrows-agent clean in a shell of root)",
            bpffs::PATH
        ),
        Err(error) => {
            let error = error.to_string();
            tracing::warn!(event = "hidden-pins-unknown", folder = %folder.display(), error);
            return Ok(());
        }
    };
    let problems = vec![config::Problem { key: "pin".into(), text }];
    Err(config::Invalid { source: folder.display().to_string(), problems }.into())
}

/// Compares the pinned ports with the `wanted` ones, because flows identify their port by its number. Returns what
/// differs. New ports may follow the pinned ones. A port whose interface had vanished is not pinned. An interface that
/// was created again under its old name has another index.
fn port_mismatch(pinned: &BTreeMap<u8, u32>, wanted: &[&str], links: &[htb::Link]) -> Option<String> {
    let name = |index: &u32| links.iter().find(|link| link.index == *index).map(|link| link.name.as_str());
    let found: Vec<_> = pinned.values().map(|index| name(index).unwrap_or("(gone)")).collect();
    let same = |(number, found): (&u8, &&str)| {
        wanted.get(usize::from(*number)).is_some_and(|wanted| *found == "(gone)" || found == wanted)
    };
    if pinned.keys().zip(&found).all(same) {
        return None;
    }
    let (found, wanted) = (found.join(", "), wanted.join(", "));
    Some(format!(
        "found the pinned ports {found}, expected [[ports]] in the same order; the configuration has {wanted} \
         (narrows-agent clean removes what is pinned)"
    ))
}

/// Settings of a controlled port's record.
pub(super) fn prepare(record: &Record<'_>, config: &config::Switch) {
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
    let police = layout::MODE_POLICE_UDP | layout::MODE_POLICE_SYN;
    record.set_mode(layout::MODE_CONTROLLED | police | once | parsing(config));
    record.set_watchdog(config.watchdog);
    record.beat(clock::now());
}

/// Settings of the record of all uncontrolled interfaces.
pub(super) fn prepare_plain(record: &Record<'_>, config: &config::Switch) {
    record.set_mode(parsing(config));
    record.set_watchdog(config.watchdog);
    record.beat(clock::now());
}

/// How the program reads packets. It must be the same at all ports, so that both directions of a flow have one key.
fn parsing(config: &config::Switch) -> u32 {
    let routed = match config.vlans {
        config::Vlans::Separate => 0,
        config::Vlans::Routed => layout::MODE_VLANS_ROUTED,
    };
    routed | if config.gtp { layout::MODE_OPEN_GTP } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_ports_must_be_the_same_in_the_same_order() {
        let link = |(index, name): (u32, &str)| htb::Link {
            index,
            name: name.into(),
            mtu: 1500,
            mac: String::new(),
            ethernet: true,
        };
        let links: Vec<_> = [(1, "lo"), (7, "eth1"), (8, "eth2"), (9, "eth3")].map(link).into();
        let pinned = BTreeMap::from([(0, 8), (1, 7)]);
        let refused = |wanted: &[&str]| port_mismatch(&pinned, wanted, &links);
        assert_eq!(refused(&["eth2", "eth1"]), None);
        assert_eq!(refused(&["eth2", "eth1", "eth3"]), None, "a new port");
        let vanished = BTreeMap::from([(1, 7)]);
        assert_eq!(port_mismatch(&vanished, &["eth2", "eth1"], &links), None);
        assert!(port_mismatch(&vanished, &["eth1", "eth2"], &links).is_some());
        for wanted in [&["eth1", "eth2"][..], &["eth2"], &["eth3", "eth2", "eth1"], &["eth2", "eth3"]] {
            assert!(refused(wanted).is_some(), "{wanted:?}");
        }
        assert_eq!(
            refused(&["eth1"]).unwrap(),
            "found the pinned ports eth2, eth1, expected [[ports]] in the same order; the configuration has eth1 \
             (narrows-agent clean removes what is pinned)"
        );
        let remade = BTreeMap::from([(0, 8), (1, 70)]);
        assert_eq!(port_mismatch(&remade, &["eth2", "eth1"], &links), None);
        assert_eq!(port_mismatch(&BTreeMap::new(), &["eth1"], &links), None, "pinned, and no more");
    }
}
