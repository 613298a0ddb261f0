//! Safe functions for system calls that the crate `nix` does not have (socket options of packet and TCP
//! sockets, batches of packets).

#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

/// Sets a socket option that takes a plain C value.
pub(crate) fn set_option<T: Copy>(fd: impl AsFd, level: i32, option: i32, value: T) -> io::Result<()> {
    // SAFETY: the pointer and the length belong to `value`, which outlives the call.
    let done = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads a socket option into `out`. Returns the number of bytes.
pub(crate) fn get_option(fd: impl AsFd, level: i32, option: i32, out: &mut [u8]) -> io::Result<usize> {
    let mut length = out.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, which is the length of `out`.
    let done = unsafe {
        libc::getsockopt(fd.as_fd().as_raw_fd(), level, option, out.as_mut_ptr().cast(), &raw mut length)
    };
    if done == 0 { Ok(length as usize) } else { Err(io::Error::last_os_error()) }
}

/// Returns the number of packets that a packet socket has dropped since the last call. Packets are dropped if they are
/// not read in time.
pub(crate) fn packet_socket_drops(fd: impl AsFd) -> u64 {
    // struct tpacket_stats: packets, drops; reading resets both (packet(7)).
    let mut stats = [0u8; 8];
    match get_option(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut stats) {
        Ok(8) => u32::from_ne_bytes([stats[4], stats[5], stats[6], stats[7]]).into(),
        _ => 0,
    }
}

/// Discards up to `max` received bytes of a TCP socket without copying them (tcp(7), MSG_TRUNC). Returns the number of
/// discarded bytes, which is 0 at the end of the stream.
pub(crate) fn discard(fd: impl AsFd, max: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC on a TCP socket, the kernel does not write to the buffer (tcp(7)), so the buffer may be
    // null.
    let n = unsafe {
        libc::recv(fd.as_fd().as_raw_fd(), std::ptr::null_mut(), max, libc::MSG_TRUNC | libc::MSG_DONTWAIT)
    };
    if n >= 0 { Ok(n as usize) } else { Err(io::Error::last_os_error()) }
}

/// Gives the calling thread a real-time priority above all ordinary threads.
pub(crate) fn real_time_priority() -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid sched_param, because it holds only integers.
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    param.sched_priority = 1;
    // SAFETY: `param` outlives the call, and 0 stands for the calling thread.
    let done = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Raises the priority of the calling thread. Without permission, the thread keeps its priority. If the thread's low
/// priority disturbs the run, the verdict on the run shows the disturbance.
pub(crate) fn high_priority() {
    // SAFETY: the call takes only integers. On Linux, 0 stands for the calling thread, not the process.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -15) };
}

/// Returns the CPU time that the calling thread has used, in nanoseconds.
pub(crate) fn thread_cpu() -> u64 {
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID)
        .map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

/// Buffers for the packets that one system call receives.
pub(crate) struct ReceiveBatch {
    frames: Vec<u8>,
    controls: Vec<Control>,
    lengths: Vec<usize>,
    stamps: Vec<Option<u64>>,
    truncated: u64,
    frame_max: usize,
    /// Whether the beginning of a packet is kept if the packet is too long for its buffer.
    keeps_heads: bool,
}

/// Space for one timestamp message, with the alignment that cmsg(3) requires.
#[repr(C, align(8))]
#[derive(Copy, Clone)]
struct Control([u8; 64]);

impl ReceiveBatch {
    /// Allocates space for `count` packets of up to `frame_max` bytes.
    pub(crate) fn new(count: usize, frame_max: usize) -> Self {
        ReceiveBatch {
            frames: vec![0; count * frame_max],
            controls: vec![Control([0; 64]); count],
            lengths: Vec::with_capacity(count),
            stamps: Vec::with_capacity(count),
            truncated: 0,
            frame_max,
            keeps_heads: false,
        }
    }

    /// Allocates space for the first `head` bytes of each of `count` packets.
    pub(crate) fn of_heads(count: usize, head: usize) -> Self {
        ReceiveBatch { keeps_heads: true, ..ReceiveBatch::new(count, head) }
    }

    /// Receives the available packets without waiting. Returns their number.
    pub(crate) fn receive(&mut self, fd: impl AsFd) -> io::Result<usize> {
        self.lengths.clear();
        self.stamps.clear();
        let mut vectors: Vec<libc::iovec> = self
            .frames
            .chunks_exact_mut(self.frame_max)
            .map(|f| libc::iovec { iov_base: f.as_mut_ptr().cast(), iov_len: f.len() })
            .collect();
        let mut messages: Vec<libc::mmsghdr> = vectors
            .iter_mut()
            .zip(&mut self.controls)
            .map(|(vector, control)| {
                // SAFETY: an all-zero mmsghdr is valid, because it has null pointers with zero lengths.
                let mut m: libc::mmsghdr = unsafe { std::mem::zeroed() };
                m.msg_hdr.msg_iov = vector;
                m.msg_hdr.msg_iovlen = 1;
                m.msg_hdr.msg_control = (&raw mut control.0).cast();
                m.msg_hdr.msg_controllen = control.0.len() as _;
                m
            })
            .collect();
        // SAFETY: each message points to its own buffer and control area, and both outlive the call.
        let n = unsafe {
            libc::recvmmsg(
                fd.as_fd().as_raw_fd(),
                messages.as_mut_ptr(),
                messages.len() as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        if n < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(0) } else { Err(error) };
        }
        for m in messages.iter().take(n as usize) {
            let cut = m.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            self.truncated += cut as u64;
            let is_kept = !cut || self.keeps_heads;
            self.lengths.push(if is_kept { (m.msg_len as usize).min(self.frame_max) } else { 0 });
            self.stamps.push(timestamp(&m.msg_hdr));
        }
        Ok(n as usize)
    }

    /// Returns packet `i` of the last call of [`receive`](Self::receive), and its CLOCK_REALTIME timestamp. If the
    /// packet was too long for its buffer, only its beginning is returned. Without `keeps_heads`, the result is empty
    /// in this case.
    pub(crate) fn packet(&self, i: usize) -> (&[u8], Option<u64>) {
        let length = self.lengths.get(i).copied().unwrap_or(0);
        let start = i * self.frame_max;
        (self.frames.get(start..start + length).unwrap_or(&[]), self.stamps.get(i).copied().flatten())
    }

    /// Returns how many of all received packets were too long for their buffers.
    pub(crate) fn truncated(&self) -> u64 {
        self.truncated
    }
}

/// Returns the time in the SO_TIMESTAMPNS message of a received packet.
fn timestamp(header: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel has filled `header`, including its control area.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !message.is_null() {
        // SAFETY: non-null results of CMSG_FIRSTHDR and CMSG_NXTHDR point to a cmsghdr within the control area.
        let m = unsafe { &*message };
        if m.cmsg_level == libc::SOL_SOCKET && m.cmsg_type == libc::SCM_TIMESTAMPNS {
            // SAFETY: the payload of SCM_TIMESTAMPNS is a timespec, which may be unaligned.
            let t: libc::timespec = unsafe { std::ptr::read_unaligned(libc::CMSG_DATA(message).cast()) };
            return Some(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64);
        }
        // SAFETY: the kernel has filled `header`, and `message` points into its control area.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
    None
}

/// Sends packets with one call. Returns the number of sent packets. The result 0 means that the device's queue is full.
pub(crate) fn send_batch(fd: impl AsFd, packets: &[&[u8]]) -> io::Result<usize> {
    let mut vectors: Vec<libc::iovec> = packets
        .iter()
        .map(|p| libc::iovec { iov_base: p.as_ptr().cast_mut().cast(), iov_len: p.len() })
        .collect();
    let mut messages: Vec<libc::mmsghdr> = vectors
        .iter_mut()
        .map(|vector| {
            // SAFETY: an all-zero mmsghdr is valid, because it has null pointers with zero lengths.
            let mut m: libc::mmsghdr = unsafe { std::mem::zeroed() };
            m.msg_hdr.msg_iov = vector;
            m.msg_hdr.msg_iovlen = 1;
            m
        })
        .collect();
    // SAFETY: each message points to a packet that outlives the call, and the kernel only reads these packets.
    let n = unsafe {
        libc::sendmmsg(
            fd.as_fd().as_raw_fd(),
            messages.as_mut_ptr(),
            messages.len() as libc::c_uint,
            libc::MSG_DONTWAIT,
        )
    };
    if n >= 0 {
        return Ok(n as usize);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::ENOBUFS) => Ok(0),
        _ => Err(error),
    }
}
