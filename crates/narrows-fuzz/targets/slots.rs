//! Fuzzes the control loop with any messages from the controller and any counters. The contents of the flows' slots are
//! arbitrary as well, because a pinned data plane can contain anything. The input is a list of steps.
#![no_main]

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use narrows_agent::switch::core::{Port, Switch};
use narrows_agent::switch::table::{Flags, FlowTable, Head, Orders, Tags, Tail};
use narrows_control::rate::{Action, FlowKey, LEAVES, PortCounters, Proto, registry};
use narrows_control::units::{Bytes, Rate, Span, Time};
use narrows_fuzz::bounded;

const SLOTS: u32 = 8;
const STEPS_MAX: usize = 200;
const CAPACITY: Rate = Rate::from_bits_per_sec(100_000_000);
/// The rate controllers that an agent can run.
const PORTS: [&str; 4] = ["brf", "pacec", "rcp", "bdr"];

#[derive(Clone, Copy, Default)]
struct Slot {
    head: Head,
    tail: Tail,
    owner: Option<(FlowKey, usize)>,
}

struct Plane(Rc<RefCell<[Slot; SLOTS as usize]>>);

impl FlowTable for Plane {
    fn capacity(&self) -> u32 {
        SLOTS
    }
    fn head(&self, slot: u32) -> Head {
        self.0.borrow()[slot as usize].head
    }
    fn tail(&self, slot: u32) -> Tail {
        self.0.borrow()[slot as usize].tail
    }
    fn owner(&self, slot: u32) -> Option<(FlowKey, usize)> {
        self.0.borrow()[slot as usize].owner
    }
    fn tags(&self, _slot: u32) -> Tags {
        Tags::default()
    }
    fn order(&self, slot: u32, _: Orders) {
        assert!(slot < SLOTS);
    }
    fn confirm(&self, slot: u32) {
        self.0.borrow_mut()[slot as usize].head.flags.0 |= Flags::CONFIRMED.0;
    }
    fn release(&mut self, slot: u32) -> io::Result<()> {
        self.0.borrow_mut()[slot as usize] = Slot::default();
        Ok(())
    }
    fn begin_tick(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns an address. Most addresses come from a small set, so that flows share addresses.
fn address(input: &mut Unstructured<'_>) -> Result<IpAddr> {
    Ok(match input.arbitrary::<u8>()? {
        n @ 0..16 => Ipv4Addr::new(10, 0, 0, n).into(),
        n @ 16..24 => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n.into()).into(),
        _ => Ipv6Addr::from_bits(input.arbitrary()?).into(),
    })
}

fn slot(input: &mut Unstructured<'_>) -> Result<Slot> {
    let key = FlowKey {
        saddr: address(input)?,
        daddr: address(input)?,
        sport: input.arbitrary::<u8>()?.into(),
        dport: input.arbitrary::<u8>()?.into(),
        proto: Proto::Tcp,
    };
    let port: u8 = input.arbitrary()?;
    let head = Head {
        live: input.arbitrary()?,
        flags: Flags(input.arbitrary()?),
        bytes: input.arbitrary()?,
        missing: input.arbitrary()?,
    };
    let tail = Tail {
        last_ns: input.arbitrary()?,
        rtt_receiver: input.arbitrary()?,
        rtt_sender: input.arbitrary()?,
        marked_unlimited: input.arbitrary()?,
        marked_limited: input.arbitrary()?,
        passed: input.arbitrary()?,
        code: input.arbitrary()?,
    };
    Ok(Slot { head, tail, owner: Some((key, usize::from(port) % (PORTS.len() + 1))) })
}

fn run(input: &mut Unstructured<'_>) -> Result<()> {
    let slots: Rc<RefCell<[Slot; SLOTS as usize]>> = Rc::default();
    let counters =
        PortCounters { capacity: Some(CAPACITY), limit_packets: [1000; LEAVES], ..PortCounters::default() };
    let ports = PORTS.iter().zip(0..).map(|(name, number)| {
        let params = registry::find(name)
            .and_then(|entry| entry.on_switches().pop())
            .expect("real switches support it");
        let controller = registry::build(name, &params, number, Bytes::new(1500)).expect("parameters");
        let controller = controller.into_aggregated().expect("a controller that takes counts");
        Port::new(controller, counters.clone())
    });
    let mut switch = Switch::new(Plane(Rc::clone(&slots)), ports.collect());
    let (mut now, mut asked) = (Time::from_nanos(5_000_000_000), Vec::new());
    let places: u8 = input.arbitrary()?;
    for place in 0..usize::from(places) % SLOTS as usize {
        slots.borrow_mut()[place] = slot(input)?;
    }
    switch.start(now, &mut asked);
    for _ in 0..STEPS_MAX {
        let place = usize::from(input.arbitrary::<u8>()?);
        match place >> 5 {
            0 => slots.borrow_mut()[place % SLOTS as usize] = slot(input)?,
            1 => switch.newcomers(now, &[place as u32 % 16], &mut asked),
            2 => {
                // The message arrives as JSON. Each port gets the message once.
                let text: &[u8] = input.arbitrary()?;
                if let Ok(message) = serde_json::from_slice(text) {
                    (0..=PORTS.len()).for_each(|port| switch.on_message(now, port, &message, &mut asked));
                }
            }
            3 => {
                let leaf = usize::from(input.arbitrary::<u8>()?) % LEAVES;
                let counters = &mut switch.ports_mut()[place % PORTS.len()].counters;
                counters.arrived[leaf] += Bytes::new(input.arbitrary::<u32>()?.into());
                counters.departed[leaf] += Bytes::new(input.arbitrary::<u32>()?.into());
                counters.queued[leaf] = Bytes::new(input.arbitrary::<u32>()?.into());
            }
            4 => {
                let head = &mut slots.borrow_mut()[place % SLOTS as usize].head;
                head.bytes = head.bytes.wrapping_add(input.arbitrary()?);
            }
            _ => {
                now += Span::from_micros(u64::from(input.arbitrary::<u32>()?) % 20_000_000);
                switch.tick(now, &mut asked);
                switch.service_grants();
                for port in 0..PORTS.len() {
                    switch.grants::<16>(port);
                }
            }
        }
        assert!(switch.work().live <= SLOTS as usize);
        assert!(asked.len() < 10_000, "a step asks for {} actions", asked.len());
        for one in asked.drain(..) {
            if let Action::SetClass { rate, ceil, .. } = one.action {
                assert!(rate <= CAPACITY && ceil <= CAPACITY, "a class of {rate:?} to {ceil:?}");
            }
        }
    }
    Ok(())
}

fuzz_target!(|input: &[u8]| {
    bounded(1 << 22, || {
        // An input may end in the middle of a step. This is not an error.
        let _ = run(&mut Unstructured::new(input));
    });
});
