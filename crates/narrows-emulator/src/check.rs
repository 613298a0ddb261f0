//! A spec that passes here does not make a run index what is not there.

use std::collections::BTreeSet;

use narrows_control::congestion::linux::reno::Reno;
use narrows_control::units::Span;
use narrows_sim::plan::{AppPlan, Plan, TransportPlan};

use crate::error::Error;
use crate::spec::Spec;

impl Spec {
    /// Checks every reference, and the plan.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), Error> {
        // The kernel has congestion controllers that the simulator does not know.
        self.plan.check_with(&|_| Some(Box::new(Reno::default())))?;
        let interval = self.sample_interval;
        let fine = interval >= Span::from_millis(1);
        require("sample_interval", format!("{interval:?}"), fine, "at least 1 ms")?;
        self.check_relays()?;
        self.check_flows()?;
        for (i, queue) in self.queues.iter().enumerate() {
            let links = self.plan.links.len();
            let fine = (queue.link as usize) < links;
            require(&format!("queues[{i}].link"), queue.link, fine, &format!("below {links}"))?;
        }
        Ok(())
    }

    fn check_relays(&self) -> Result<(), Error> {
        let links = self.plan.links.len();
        let (mut taken, mut relayed) = (BTreeSet::new(), BTreeSet::new());
        for (i, relay) in self.relays.iter().enumerate() {
            let fine = (relay.link as usize) < links;
            require(&format!("relays[{i}].link"), relay.link, fine, &format!("below {links}"))?;
            let fine = relayed.insert(relay.link);
            require(&format!("relays[{i}].link"), relay.link, fine, "each link once")?;
            let interface = &relay.from.interface;
            let fine = taken.insert(&relay.from);
            require(&format!("relays[{i}].from"), interface, fine, "an interface that feeds no other link")?;
            let fine = relay.from != relay.to;
            require(&format!("relays[{i}].to"), interface, fine, "another interface than `from`")?;
        }
        Ok(())
    }

    fn check_flows(&self) -> Result<(), Error> {
        let Plan { flows, nodes, .. } = &self.plan;
        let (mut known, mut ports) = (BTreeSet::new(), BTreeSet::new());
        for (i, spec) in self.flows.iter().enumerate() {
            let at = format!("flows[{i}]");
            let flow = flows.get(spec.flow as usize);
            let flow = flow.filter(|_| known.insert(spec.flow)).ok_or_else(|| {
                Error::invalid(format!("{at}.flow"), spec.flow, format!("below {}, each once", flows.len()))
            })?;
            let family = spec.source.is_ipv4() == spec.destination.is_ipv4();
            require(&format!("{at}.destination"), spec.destination, family, "the source's address family")?;
            let udp = matches!(flow.transport, TransportPlan::Udp { .. });
            let fine = spec.port != 0 && ports.insert((spec.destination, spec.port, udp));
            require(&format!("{at}.port"), spec.port, fine, "above 0, one flow at an address and port")?;
            for node in [flow.from, flow.to] {
                let name = &nodes[node as usize];
                let fine = self.namespaces.contains_key(name);
                require("namespaces", format!("none for {name}"), fine, "one for each end of a flow")?;
            }
            if spec.external {
                let one = flow.count == 1 && !matches!(flow.app, AppPlan::Poisson { .. });
                require(&format!("{at}.external"), &flow.name, one && !udp, "a single TCP flow")?;
            }
        }
        Ok(())
    }
}

fn require(what: &str, found: impl ToString, fine: bool, expected: &str) -> Result<(), Error> {
    if fine { Ok(()) } else { Err(Error::invalid(what, found, expected)) }
}
