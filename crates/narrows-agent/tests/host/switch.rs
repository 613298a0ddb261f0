//! A switch in user space, for tests. It forwards frames between two interfaces with a delay, writes rates into ACKs,
//! drops data and records packets. It edits headers with the code of `narrows_control`, which is the reference for the
//! eBPF programs.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};

use narrows_agent::host::HostError;
use narrows_control::feedback::code::RateCode;
use narrows_control::feedback::option::{self, Format};
use narrows_control::rate::RateOption;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// The switch's settings, which may change while it runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Behaviour {
    /// Rate code for SYN-ACKs; `None`: no rate. If `acks` is `None`, this code is also used for A's packets without
    /// data, such as the third packet of the handshake.
    pub(super) handshake: Option<u16>,
    /// Rate code for all other ACKs without data; `None`: no rate.
    pub(super) acks: Option<u16>,
    /// Whether to write only where the receiver has reserved room.
    pub(super) only_reserved: bool,
    /// Whether to use the paper's format, which this switch writes only into ACKs.
    pub(super) padding: bool,
    /// Drop every n-th data packet from A; 0: none.
    pub(super) lose_each: u64,
}

/// A TCP packet that arrived at the switch.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) at_ns: u64,
    /// Whether A sent the packet to B.
    pub(super) forth: bool,
    pub(super) flags: u8,
    /// Length of the IP datagram, in bytes.
    pub(super) l3: usize,
    pub(super) payload: usize,
    /// The rate option at arrival.
    pub(super) option: RateOption,
    /// The first two bytes of the options.
    pub(super) first_options: u16,
}

impl Seen {
    pub(super) fn is_syn(&self) -> bool {
        self.flags & 0x12 == 0x02
    }

    pub(super) fn is_syn_ack(&self) -> bool {
        self.flags & 0x12 == 0x12
    }
}

#[derive(Debug, Default)]
struct Shared {
    behaviour: Mutex<Behaviour>,
    seen: Mutex<Vec<Seen>>,
    stop: AtomicBool,
}

pub(super) struct Switch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Switch {
    /// Starts a switch between two interfaces. `enter` moves the switch's thread to the namespace of the interfaces.
    /// Returns only when the switch can receive, because a lost ARP request would delay the first connection by a
    /// second.
    pub(super) fn start(
        interfaces: [String; 2],
        delay_ns: u64,
        behaviour: Behaviour,
        enter: impl FnOnce() + Send + 'static,
    ) -> Self {
        let shared = Arc::new(Shared { behaviour: Mutex::new(behaviour), ..Shared::default() });
        let on_thread = Arc::clone(&shared);
        let (ready, receives) = mpsc::channel();
        let thread = thread::spawn(move || {
            enter();
            let sockets = interfaces.map(|interface| packet_socket(&interface).expect("a packet socket"));
            let _ = ready.send(());
            run(&sockets, delay_ns, &on_thread).expect("the test's switch works");
        });
        receives.recv().expect("the test's switch receives");
        Switch { shared, thread: Some(thread) }
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.shared.behaviour.lock().unwrap());
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns the time of CLOCK_MONOTONIC, in ns.
pub(super) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("the clock runs");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// A packet socket for all frames of an interface (packet(7)).
fn packet_socket(interface: &str) -> io::Result<OwnedFd> {
    let all = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: this is a plain system call without pointers.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, i32::from(all)) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened the descriptor, and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let index = nix::net::if_::if_nametoindex(interface)?;
    // SAFETY: all zeros is a valid address of this type.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = all;
    address.sll_ifindex = index as i32;
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the length is that of the address, which outlives the call.
    if unsafe { libc::bind(fd, (&raw const address).cast(), len) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let on = 1i32;
    // This buffer is large enough for all packets that arrive while the machine's load delays the thread.
    let room = 64i32 << 20;
    // SAFETY: the values have the given lengths and outlive the calls. Without PACKET_IGNORE_OUTGOING, the socket would
    // receive its own packets.
    unsafe {
        libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, (&raw const room).cast(), 4);
        libc::setsockopt(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, (&raw const on).cast(), 4);
    }
    Ok(socket)
}

/// Limits the switch to 100 Mbit/s, to leave CPU time for the programs under test.
const NS_PER_BYTE: u64 = 80;
const QUEUE_NS: u64 = 50_000_000;

fn run(sockets: &[OwnedFd; 2], delay_ns: u64, shared: &Shared) -> io::Result<()> {
    let mut queues: [VecDeque<(u64, Vec<u8>)>; 2] = Default::default();
    let mut buffer = vec![0u8; 1 << 16];
    let mut data = 0u64;
    // For each direction, the time at which its cable becomes free.
    let mut free = [0u64; 2];
    while !shared.stop.load(Ordering::Relaxed) {
        let due = queues.iter().filter_map(|q| q.front().map(|(at, _)| *at)).min();
        let wait = due.map_or(10_000_000, |at| at.saturating_sub(now_ns()).min(10_000_000));
        let mut polled = [
            PollFd::new(sockets[0].as_fd(), PollFlags::POLLIN),
            PollFd::new(sockets[1].as_fd(), PollFlags::POLLIN),
        ];
        ppoll(&mut polled, Some(TimeSpec::new(0, wait as i64)), None)?;
        for from in 0..2 {
            while let Ok(len) = nix::unistd::read(&sockets[from], &mut buffer) {
                let mut frame = buffer[..len].to_vec();
                let now = now_ns();
                let begin = free[from].max(now);
                if pass(&mut frame, from == 0, shared, &mut data) && begin - now <= QUEUE_NS {
                    free[from] = begin + frame.len() as u64 * NS_PER_BYTE;
                    queues[1 - from].push_back((free[from] + delay_ns, frame));
                }
            }
        }
        for (to, queue) in queues.iter_mut().enumerate() {
            while queue.front().is_some_and(|(at, _)| *at <= now_ns()) {
                let Some((_, frame)) = queue.pop_front() else { break };
                // Packets that do not fit into the interface's queue are lost, as on any switch.
                let _ = nix::unistd::write(&sockets[to], &frame);
            }
        }
    }
    Ok(())
}

/// Reads a frame and edits it. Returns false if the frame must be dropped.
fn pass(frame: &mut Vec<u8>, forth: bool, shared: &Shared, data: &mut u64) -> bool {
    let behaviour = shared.behaviour.lock().unwrap().clone();
    // Only TCP over IPv4 is edited. All other packets, and packets with IP options, pass unchanged.
    if frame.len() < 54 || frame[12..14] != [8, 0] || frame[14] != 0x45 || frame[23] != 6 {
        return true;
    }
    let l3 = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
    let header = usize::from(frame[14 + 20 + 12] >> 4) * 4;
    let tcp = 34;
    let seen = Seen {
        at_ns: now_ns(),
        forth,
        flags: frame[tcp + 13],
        l3,
        payload: l3 - 20 - header,
        option: option::read(&frame[tcp..tcp + header], Format::Experimental).option,
        first_options: if header > 20 { u16::from_be_bytes([frame[tcp + 20], frame[tcp + 21]]) } else { 0 },
    };
    shared.seen.lock().unwrap().push(seen.clone());
    if forth && seen.payload > 0 {
        *data += 1;
        if behaviour.lose_each != 0 && data.is_multiple_of(behaviour.lose_each) {
            return false;
        }
    }
    // Data may flow in either direction. Rates are written only into packets without data.
    let third = forth && seen.payload == 0;
    let code = if seen.is_syn_ack() || third { behaviour.handshake } else { behaviour.acks };
    let code = if third && behaviour.acks.is_some() { behaviour.acks } else { code };
    let Some(code) = code.map(RateCode::from_bits) else { return true };
    if seen.is_syn() || seen.payload > 0 {
        return true;
    }
    if behaviour.padding {
        let _ = option::rewrite(&mut frame[tcp..tcp + header], Format::Padding, code);
        return true;
    }
    if option::rewrite(&mut frame[tcp..tcp + header], Format::Experimental, code).is_ok()
        || behaviour.only_reserved
    {
        return true;
    }
    if let Ok(longer) = option::insert(&frame[tcp..tcp + header], code) {
        frame.truncate(tcp);
        frame.extend_from_slice(longer.as_bytes());
        let l3 = (frame.len() - 14) as u16;
        frame[16..18].copy_from_slice(&l3.to_be_bytes());
        frame[24..26].fill(0);
        let sum = narrows_control::feedback::checksum::compute(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    }
    true
}

/// Returns the value, or panics with the error.
pub(super) fn must<T>(result: Result<T, HostError>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}
