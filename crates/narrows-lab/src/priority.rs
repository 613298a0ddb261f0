//! Gives threads priority over normal threads.

/// Priority of a real-time thread, which runs before all normal threads (`SCHED_FIFO` of sched(7)).
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Priority {
    Lowest,
    Highest,
}

/// Gives the calling thread a real-time priority, so that it runs before all normal threads. Threads and programs that
/// it starts inherit this priority.
///
/// Tests that measure a rate need this priority. If the sender or a switch in user space waits for a processor, the
/// rate is too low. While a thread with this priority runs, no normal thread can use its processor. Such a thread must
/// therefore sleep most of the time. Without the permission (CAP_SYS_NICE), this function has no effect.
pub fn run_before_others() {
    run_first(Priority::Lowest);
}

#[allow(unsafe_code, reason = "no wrapper of ours has these")]
pub(crate) fn run_first(priority: Priority) {
    // SAFETY: these are plain system calls for the calling thread, and their parameters outlive the calls.
    unsafe {
        let sched_priority = match priority {
            Priority::Lowest => libc::sched_get_priority_min(libc::SCHED_FIFO),
            Priority::Highest => libc::sched_get_priority_max(libc::SCHED_FIFO),
        };
        let parameters = libc::sched_param { sched_priority };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters);
    }
}
