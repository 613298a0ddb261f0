//! Validation of specs. In a spec that passes the check, all indices are valid.

use std::collections::BTreeSet;

use narrows_control::catalogue::Choice;
use narrows_control::congestion::Controller;
use narrows_control::congestion::linux::reno::Reno;
use narrows_control::units::Span;
use narrows_sim::plan::{AppPlan, Plan, Protocol, TransportPlan, check_for_real_stacks};

use crate::error::Error;
use crate::spec::Spec;

impl Spec {
    /// Checks the plan, and the relays, flows and queues that refer to it.
    ///
    /// # Errors
    /// Returns the first invalid value.
    pub fn check(&self) -> Result<(), Error> {
        // The kernel has congestion controllers that the simulator does not have, so this check accepts any name.
        let any = |_: &Choice| Some(Box::new(Reno::default()) as Box<dyn Controller>);
        check_for_real_stacks(&self.plan, &any)?;
        let interval = self.sample_interval;
        let is_valid = interval >= Span::from_millis(1);
        require("sample_interval", format!("{interval:?}"), is_valid, "at least 1 ms")?;
        self.check_relays()?;
        self.check_flows()?;
        for (i, queue) in self.queues.iter().enumerate() {
            let links = self.plan.links.len();
            let is_valid = (queue.link as usize) < links;
            require(&format!("queues[{i}].link"), queue.link, is_valid, &format!("below {links}"))?;
        }
        Ok(())
    }

    fn check_relays(&self) -> Result<(), Error> {
        let links = self.plan.links.len();
        let (mut taken, mut relayed) = (BTreeSet::new(), BTreeSet::new());
        for (i, relay) in self.relays.iter().enumerate() {
            let is_valid = (relay.link as usize) < links;
            require(&format!("relays[{i}].link"), relay.link, is_valid, &format!("below {links}"))?;
            let is_valid = relayed.insert(relay.link);
            require(&format!("relays[{i}].link"), relay.link, is_valid, "a link without another relay")?;
            let interface = &relay.from.interface;
            let is_valid = taken.insert(&relay.from);
            require(
                &format!("relays[{i}].from"),
                interface,
                is_valid,
                "an interface that feeds no other link",
            )?;
            let is_valid = relay.from != relay.to;
            require(&format!("relays[{i}].to"), interface, is_valid, "another interface than `from`")?;
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
                Error::invalid(
                    format!("{at}.flow"),
                    spec.flow,
                    format!("below {}, each flow once", flows.len()),
                )
            })?;
            let family = spec.source.is_ipv4() == spec.destination.is_ipv4();
            require(&format!("{at}.destination"), spec.destination, family, "the source's address family")?;
            let (server, port, udp) = match &flow.transport {
                TransportPlan::Program(program) => {
                    let server = program.server_at().of((spec.source, spec.destination));
                    (server, program.port, program.protocol == Protocol::Udp)
                }
                transport => (spec.destination, spec.port, matches!(transport, TransportPlan::Udp { .. })),
            };
            let is_valid = port != 0 && ports.insert((server, port, udp));
            require(
                &format!("{at}.port"),
                port,
                is_valid,
                "above 0, without another flow at this address and port",
            )?;
            for node in [flow.from, flow.to] {
                let name = &nodes[node as usize];
                let is_valid = self.namespaces.contains_key(name);
                require(
                    "namespaces",
                    format!("none for {name}"),
                    is_valid,
                    "a namespace for each end of a flow",
                )?;
            }
            if spec.external {
                let one = flow.count == 1 && !matches!(flow.app, AppPlan::Poisson { .. });
                require(&format!("{at}.external"), &flow.name, one && !udp, "a single TCP flow")?;
            }
        }
        Ok(())
    }
}

fn require(what: &str, found: impl ToString, is_valid: bool, expected: &str) -> Result<(), Error> {
    if is_valid { Ok(()) } else { Err(Error::invalid(what, found, expected)) }
}
