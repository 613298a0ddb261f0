//! Starts a switch: program, queues, records, attachments, controller, in this order.

use std::collections::BTreeMap;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

use narrows_control::rate::{LEAVES, Leaf, PortCounters};
use narrows_control::units::{Bytes, Rate, Time};

use super::{Controlled, Runner, UNCONFIRMED_MIN, missing_interface};
use crate::bpffs;
use crate::cli::{Failure, Services};
use crate::clock;
use crate::config;
use crate::dataplane::layout::{self, WireFormat};
use crate::dataplane::ports::Port as Record;
use crate::dataplane::program::{Attachment, Sizes, Switch as Plane, Tunables};
use crate::guard::Charge;
use crate::htb::{self, Htb, LeafStats, Rtnl};
use crate::switch::core::{Port, Switch};
use crate::switch::link::{Link, PortDescription};
use crate::switch::shares::Framing;
use crate::switch::view::Meters;

/// HTB needs a rate for the link. A measured link is not shaped.
const UNSHAPED: Rate = Rate::from_bits_per_sec(100_000_000_000);

impl Runner {
    /// Loads the program, builds queues, attaches to all interfaces.
    ///
    /// # Errors
    /// If the kernel refuses, an interface does not exist, or a controller's secret cannot be read.
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
        let mut rtnl = Rtnl::open()?;
        let plane = load(config, &mut rtnl)?;
        let (mut ports, mut cores, mut descriptions, mut indices) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (number, port) in (0u8..).zip(&config.ports) {
            let link = rtnl.ethernet(&port.interface)?;
            found.push((port.interface.clone(), link.index));
            let claim = claim(&link)?;
            let mtu = port.mtu.unwrap_or(Bytes::new(u64::from(link.mtu)));
            // The guardian is charged first: it skips missing objects. A pinned data plane keeps its queues.
            if config.pin.is_none() {
                services.guardian.charge(&Charge::Htb(htb::Remains::before(&mut rtnl, link.index)?))?;
            }
            let controlled = control(port, &link, claim, mtu, config.pin.is_some())?;
            let capacity = controlled.capacity;
            let counters =
                PortCounters { capacity, limit_packets: [port.limit; LEAVES], ..PortCounters::default() };
            cores.push(Port::new(port.rate_controller(u32::from(number), mtu)?, counters, mtu));
            ports.push(controlled);
            prepare(&plane.ports.get(number).ok_or("too many ports")?, config);
            indices.push((link.index, number));
            descriptions.push(PortDescription {
                port: u32::from(number),
                interface: link,
                capacity: capacity.unwrap_or(Rate::ZERO),
                controller: port.controller.clone(),
                params: port.params.clone(),
                thresholds: port.thresholds(mtu),
            });
        }
        // Uncontrolled ports share one record, after the controlled ones.
        let plain = u8::try_from(config.ports.len())?;
        for name in &config.interfaces {
            let index = rtnl.ethernet(name)?.index;
            indices.push((index, plain));
            found.push((name.clone(), index));
        }
        let record = plane.ports.get(plain).ok_or("too many ports")?;
        record.set_mode(0);
        record.beat(clock::now());
        let mut attachments = Vec::new();
        for (index, number) in indices {
            plane.set_interface(index, number)?;
            attachments.push(attach(&plane, config.pin.as_deref(), index)?);
        }
        let link = match &config.controller {
            Some(controller) => Some(Link::start(controller, descriptions)?),
            None => None,
        };
        let mut runner = Runner {
            switch: Switch::new(plane, cores),
            interfaces: found.clone(),
            looked_for_at: clock::now(),
            ports,
            _attachments: attachments,
            link,
            meters: Meters::default(),
            tick: config.tick,
            name: config.common.name.clone(),
            started: clock::now(),
            times: Default::default(),
            asked: Vec::new(),
            services_at: Time::ZERO,
        };
        let now = runner.refresh()?;
        runner.switch.start(now, &mut runner.asked);
        runner.carry_out()?;
        runner.publish_grants(now);
        // Before the first reader can connect.
        services.board.publish(runner.snapshot(now, false));
        Ok(runner)
    }
}

/// A new data plane, or a pinned one of an earlier agent.
fn load(config: &config::Switch, rtnl: &mut Rtnl) -> Result<Plane, Failure> {
    let sizes = Sizes { flows: config.max_flows, ..Sizes::default() };
    let tunables = Tunables { watchdog: config.watchdog, ..Tunables::default() };
    match &config.pin {
        Some(folder) if folder.join("program").exists() => {
            let plane = Plane::open_pinned(folder)?;
            let wanted: Vec<_> = config.ports.iter().map(|port| port.interface.as_str()).collect();
            match port_mismatch(&plane.controlled()?, &wanted, &rtnl.links()?) {
                Some(text) => {
                    let problems = vec![config::Problem { key: "ports".into(), text }];
                    Err(config::Invalid { source: folder.display().to_string(), problems }.into())
                }
                None => Ok(plane),
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
/// differs. A deleted interface has no index. An interface that was created again
/// under its old name has another index.
fn port_mismatch(pinned: &BTreeMap<u8, u32>, wanted: &[&str], links: &[htb::Link]) -> Option<String> {
    let name = |index: &u32| links.iter().find(|link| link.index == *index).map(|link| link.name.as_str());
    let found: Vec<_> = pinned.values().map(|index| name(index).unwrap_or("(gone)")).collect();
    let same = |(found, wanted): (&&str, &&str)| *found == "(gone)" || found == wanted;
    if found.is_empty() || (found.len() == wanted.len() && found.iter().zip(wanted).all(same)) {
        return None;
    }
    let (found, wanted) = (found.join(", "), wanted.join(", "));
    Some(format!(
        "found the pinned ports {found}, expected [[ports]] in the same order; the configuration has {wanted} \
         (narrows-agent clean removes what is pinned)"
    ))
}

/// Claims a port for the life of this process, because two agents would both control one queue. The name of an abstract
/// socket is unique in a network namespace, and is released when its holder ends (unix(7)).
fn claim(link: &htb::Link) -> Result<UnixDatagram, Failure> {
    let name = SocketAddr::from_abstract_name(format!("narrows-agent-port-{}", link.index))?;
    UnixDatagram::bind_addr(&name).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => format!("another agent controls interface {} already", link.name).into(),
        _ => error.into(),
    })
}

/// Builds the queue of a port.
fn control(
    port: &config::Port,
    link: &htb::Link,
    claim: UnixDatagram,
    mtu: Bytes,
    keep: bool,
) -> Result<Controlled, Failure> {
    let framing = Framing { mtu: mtu.get(), overhead: u64::from(port.overhead) };
    let known = match port.capacity {
        config::Capacity::Known(rate) => Some(rate),
        config::Capacity::Measured => None,
    };
    let shape = htb::Layout {
        limits: [port.limit; LEAVES],
        overhead: port.overhead,
        ..htb::Layout::new(known.or(port.shape).unwrap_or(UNSHAPED), mtu)
    };
    let mut htb = Htb::install(link.index, &shape)?;
    if keep {
        htb.keep();
    }
    Ok(Controlled {
        interface: port.interface.clone(),
        _claim: claim,
        htb,
        framing,
        stats: [LeafStats::default(); LEAVES],
        wanted: [(Rate::ZERO, Rate::ZERO); 3],
        changed: false,
        shaped: known.is_some() || port.shape.is_some(),
        syn_share: port.syn_share,
        congestion: "none",
        repetitions: Default::default(),
        capacity: known.map(|rate| framing.l3(rate)),
        refused: (0, None),
    })
}

/// Settings of a controlled port that do not change.
fn prepare(record: &Record<'_>, config: &config::Switch) {
    record.set_format(match config.format {
        config::Format::Padding => WireFormat::Padding,
        config::Format::Reserved => WireFormat::Reserved,
        config::Format::Insert => WireFormat::Insert,
    });
    record.set_priorities([Leaf::Mouse, Leaf::Elephant, Leaf::OtherTcp, Leaf::Udp].map(Htb::priority));
    record.set_unconfirmed_max(UNCONFIRMED_MIN);
    let once = match config.feedback {
        config::Feedback::EveryAck => 0,
        config::Feedback::OncePerRtt => layout::MODE_ONCE_PER_RTT,
    };
    record.set_mode(layout::MODE_CONTROLLED | layout::MODE_POLICE_UDP | layout::MODE_POLICE_SYN | once);
    record.beat(clock::now());
}

fn attach(plane: &Plane, pin: Option<&Path>, index: u32) -> Result<Attachment, Failure> {
    if let Some(folder) = pin {
        if let Ok(attachment) = Plane::open_attachment(folder, index) {
            return Ok(attachment);
        }
        let attachment = plane.attach(index)?;
        Plane::pin_attachment(&attachment, folder, index)?;
        return Ok(attachment);
    }
    Ok(plane.attach(index)?)
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
        for wanted in [&["eth1", "eth2"][..], &["eth2"], &["eth2", "eth1", "eth3"], &["eth2", "eth3"]] {
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
