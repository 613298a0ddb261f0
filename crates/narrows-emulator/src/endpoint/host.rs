//! The senders and receivers of flows in one namespace, and their event loop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_control::units::Time;
use narrows_sim::model::EmptyPath;
use narrows_sim::plan::{FlowPlan, TransportPlan};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use rustc_hash::FxHashMap;

use super::board::{FlowBoard, Registry};
use super::schedule::Member;
use super::tcp::{Next, Sender, Sink, TcpConfig, abort_on_close, listener};
use super::udp::{UdpSender, UdpSink};
use crate::clock::Clock;
use crate::error::Error;
use crate::netns;
use crate::spec::FlowSpec;

/// Longest sleep between two checks of the cancel flag.
const NAP_MS: u8 = 50;

/// The timer's token in epoll events. The tokens of sockets are higher.
const TIMER: u64 = 0;

/// A part of a flow that owns a socket: a listener, a sender or a receiver.
enum End {
    Listener(TcpListener, usize),
    Sender(Box<Sender>),
    Sink(Sink),
    UdpSender(Box<UdpSender>),
    UdpSink(UdpSink),
}

/// A scheduled task.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// Start the flow at this index of `starts`.
    Start(usize),
    /// Wake the sender that has this token.
    Wake(u64),
}

/// The parameters of a flow that the host sends or receives.
struct Entry {
    spec: FlowSpec,
    transport: Transport,
}

impl Entry {
    fn window_clamp(&self) -> Option<i32> {
        match &self.transport {
            Transport::Tcp(config) => config.window_clamp(),
            Transport::Udp { .. } => None,
        }
    }
}

#[derive(Clone)]
enum Transport {
    Tcp(TcpConfig),
    Udp { rate: narrows_control::units::Rate, packet: u32 },
}

/// The senders and receivers of flows in one namespace.
pub(crate) struct Host {
    netns: PathBuf,
    entries: FxHashMap<usize, Entry>,
    starts: Vec<(Member, Arc<FlowBoard>)>,
    registry: Arc<Registry>,
    epoll: Epoll,
    timer: TimerFd,
    timer_at: Time,
    ends: FxHashMap<u64, End>,
    tasks: BinaryHeap<Reverse<(Time, Task)>>,
    next_token: u64,
}

impl Host {
    /// Returns a host without flows.
    ///
    /// # Errors
    /// If the kernel does not create the epoll instance or the timer.
    pub(crate) fn new(netns: PathBuf, registry: Arc<Registry>) -> Result<Self, Error> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(Error::at(&netns, "epoll"))?;
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)
                .map_err(Error::at(&netns, "timerfd"))?;
        epoll
            .add(timer.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, TIMER))
            .map_err(Error::at(&netns, "epoll"))?;
        Ok(Host {
            netns,
            entries: FxHashMap::default(),
            starts: Vec::new(),
            registry,
            epoll,
            timer,
            timer_at: Time::NEVER,
            ends: FxHashMap::default(),
            tasks: BinaryHeap::new(),
            next_token: TIMER + 1,
        })
    }

    /// Adds a flow that the host sends or receives.
    pub(crate) fn add_flow(&mut self, index: usize, spec: &FlowSpec, plan: &FlowPlan, path: EmptyPath) {
        let transport = match &plan.transport {
            TransportPlan::Tcp { cc, pacing, receive_window, mss, .. } => Transport::Tcp(TcpConfig {
                congestion: spec.congestion.clone().unwrap_or_else(|| cc.name.clone()),
                mss: *mss,
                pacing: *pacing,
                receive_window: *receive_window,
                path,
            }),
            TransportPlan::Udp { rate, packet } => Transport::Udp { rate: *rate, packet: *packet },
            // `Spec::check` refuses flows that use `Stack`, and the user's programs open their sockets themselves.
            TransportPlan::Stack(_) | TransportPlan::Program(_) => return,
        };
        self.entries.insert(index, Entry { spec: spec.clone(), transport });
    }

    /// Opens the receiving socket of a flow.
    ///
    /// # Errors
    /// If the namespace does not have the address, or if the port is in use.
    pub(crate) fn receive(&mut self, index: usize) -> Result<(), Error> {
        let Some(entry) = self.entries.get(&index) else { return Ok(()) };
        let address = SocketAddr::new(entry.spec.destination, entry.spec.port);
        let end = netns::inside(&self.netns, || {
            let end = match &entry.transport {
                Transport::Tcp(config) => listener(address, config).map(|l| End::Listener(l, index)),
                Transport::Udp { .. } => UdpSink::open(address, index).map(End::UdpSink),
            };
            end.map_err(Error::at(&self.netns, &format!("receive at {address}")))
        })?;
        self.add(end, EpollFlags::EPOLLIN).map(drop).map_err(Error::at(&self.netns, "epoll"))
    }

    /// Schedules the start of a flow.
    pub(crate) fn schedule(&mut self, member: Member, board: Arc<FlowBoard>) {
        self.tasks.push(Reverse((member.start, Task::Start(self.starts.len()))));
        self.starts.push((member, board));
    }

    /// Returns the namespace of the host.
    pub(crate) fn netns(&self) -> &PathBuf {
        &self.netns
    }

    /// Runs until `end` in the calling thread, which must be in the namespace.
    ///
    /// # Errors
    /// If the timer or epoll_wait(2) fails.
    pub(crate) fn run(mut self, clock: Clock, end: Time, stop: &AtomicBool) -> Result<(), Error> {
        // A sender that gets no CPU time for 10 ms looks as if the network limited it. This thread therefore gets a
        // high priority.
        crate::raw::high_priority();
        let mut events = vec![EpollEvent::empty(); 256];
        let is_over =
            || clock.now() >= end && crate::clock::monotonic() >= clock.zero || stop.load(Ordering::Relaxed);
        loop {
            if is_over() {
                break;
            }
            if crate::clock::monotonic() >= clock.zero {
                self.do_tasks(clock);
            }
            self.set_timer(clock).map_err(Error::at(&self.netns, "timerfd"))?;
            let n = match self.epoll.wait(&mut events, EpollTimeout::from(NAP_MS)) {
                Ok(n) => n,
                Err(nix::errno::Errno::EINTR) => 0,
                Err(e) => return Err(Error::at(&self.netns, "epoll")(e)),
            };
            // While this thread waited, the thread of another host may have ended and reset its connections. At the end
            // of the run, these resets are not failures, so do not handle the events.
            if is_over() {
                break;
            }
            for event in events.iter().take(n) {
                self.on_event(clock, event.data(), event.events());
            }
        }
        for end in self.ends.values() {
            match end {
                End::Sender(s) => {
                    abort_on_close(&*s.fd);
                    s.board.clear_socket();
                }
                End::Sink(s) => abort_on_close(&s.stream),
                End::Listener(..) | End::UdpSender(_) | End::UdpSink(_) => {}
            }
        }
        Ok(())
    }

    fn add(&mut self, end: End, flags: EpollFlags) -> io::Result<u64> {
        let token = self.next_token;
        self.next_token += 1;
        let fd: BorrowedFd<'_> = match &end {
            End::Listener(l, _) => l.as_fd(),
            End::Sender(s) => s.fd.as_fd(),
            End::Sink(s) => s.stream.as_fd(),
            End::UdpSender(s) => s.socket.as_fd(),
            End::UdpSink(s) => s.socket.as_fd(),
        };
        self.epoll.add(fd, EpollEvent::new(flags, token))?;
        self.ends.insert(token, end);
        Ok(token)
    }

    /// Removes one end of a flow and closes its socket. The kernel then removes the socket from the epoll instance.
    fn remove(&mut self, token: u64) {
        self.ends.remove(&token);
    }

    fn do_tasks(&mut self, clock: Clock) {
        // Tasks that this loop schedules are kept in `later`. They run only after the next events of the sockets.
        let now = clock.now();
        let mut later = Vec::new();
        while let Some(&Reverse((at, task))) = self.tasks.peek() {
            if at > now {
                break;
            }
            self.tasks.pop();
            match task {
                Task::Start(i) => self.start(clock, i),
                Task::Wake(token) => {
                    let next = match self.ends.get_mut(&token) {
                        Some(End::Sender(s)) => s.pump(now),
                        Some(End::UdpSender(s)) => s.pump(now),
                        _ => continue,
                    };
                    self.follow_up(token, next, &mut later);
                }
            }
        }
        self.tasks.extend(later);
    }

    fn follow_up(&mut self, token: u64, next: Next, later: &mut Vec<Reverse<(Time, Task)>>) {
        match next {
            Next::Socket => {}
            Next::Time(at) => later.push(Reverse((at, Task::Wake(token)))),
            Next::Finished => self.remove(token),
        }
    }

    fn start(&mut self, clock: Clock, index: usize) {
        let Some((member, board)) = self.starts.get(index).cloned() else { return };
        let Some(entry) = self.entries.get(&member.spec) else { return };
        let destination = SocketAddr::new(entry.spec.destination, entry.spec.port);
        let announce = |port| self.registry.insert(member.spec, port, &board);
        let stop = member.stop;
        board.started.set(clock.now());
        let end = match &entry.transport {
            Transport::Tcp(config) => {
                let app = (member.app, stop, self.starts.len());
                let port = entry.spec.source_port.and_then(|first| {
                    u16::try_from(member.member).ok().and_then(|member| first.checked_add(member))
                });
                let source = SocketAddr::new(entry.spec.source, port.unwrap_or(0));
                Sender::connect(source, destination, config, app, &board, announce)
                    .map(|s| (End::Sender(Box::new(s)), stop))
            }
            Transport::Udp { rate, packet } => {
                let (what, when) = ((*rate, *packet), (member.start, stop));
                UdpSender::open(entry.spec.source, destination, what, when, &board, announce)
                    .map(|s| (End::UdpSender(Box::new(s)), member.start))
            }
        };
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
        let added = end.and_then(|(end, wake)| {
            let flags = if matches!(end, End::UdpSender(_)) { EpollFlags::empty() } else { flags };
            Ok((self.add(end, flags)?, wake))
        });
        match added {
            Ok((token, wake)) if wake != Time::NEVER => self.tasks.push(Reverse((wake, Task::Wake(token)))),
            Ok(_) => {}
            Err(e) => board.fail(e),
        }
    }

    fn on_event(&mut self, clock: Clock, token: u64, flags: EpollFlags) {
        if token == TIMER {
            // Reading the timer clears its event. The loop in `run` processes the due tasks in each iteration, so this
            // function does not process them.
            let _ = self.timer.wait();
            self.timer_at = Time::NEVER;
            return;
        }
        let broken = flags.intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP);
        let mut later = Vec::new();
        match self.ends.get_mut(&token) {
            None => {}
            Some(End::Listener(listener, spec)) => {
                let (accepted, spec) = (listener.accept(), *spec);
                if let Ok((stream, from)) = accepted {
                    // A connection from another program has no flow in the registry. Such a connection is closed.
                    if let Some(board) = self.registry.find(spec, from.port()) {
                        let ready = stream.set_nonblocking(true);
                        let clamp = self.entries.get(&spec).and_then(Entry::window_clamp);
                        let sink = End::Sink(Sink { stream, board: board.clone(), clamp });
                        if let Err(e) = ready.and_then(|()| self.add(sink, EpollFlags::EPOLLIN)) {
                            board.fail(e);
                        }
                    }
                }
            }
            Some(End::Sender(sender)) => {
                let next = sender.on_socket(clock.now(), broken);
                self.follow_up(token, next, &mut later);
            }
            Some(End::Sink(sink)) => {
                let is_open = sink.on_socket(|| clock.now());
                let next = if is_open { Next::Socket } else { Next::Finished };
                self.follow_up(token, next, &mut later);
            }
            Some(End::UdpSink(sink)) => sink.on_socket(&self.registry),
            // A pending ICMP error has caused this event. Reading the error clears the event.
            Some(End::UdpSender(sender)) => drop(sender.socket.take_error()),
        }
        self.tasks.extend(later);
    }

    /// Sets the timer to the time of the next task.
    fn set_timer(&mut self, clock: Clock) -> nix::Result<()> {
        let Some(&Reverse((at, _))) = self.tasks.peek() else { return Ok(()) };
        if at >= self.timer_at || at == Time::NEVER {
            return Ok(());
        }
        let nanos = clock.monotonic(at).max(1);
        let spec = TimeSpec::new((nanos / 1_000_000_000) as _, (nanos % 1_000_000_000) as _);
        self.timer.set(Expiration::OneShot(spec), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        self.timer_at = at;
        Ok(())
    }
}
