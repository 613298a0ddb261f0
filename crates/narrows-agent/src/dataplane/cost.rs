//! Reads the cost of a program from the kernel's counters.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{Error, sys};

/// Makes the kernel measure the run time of all programs while this value exists. The measurement itself takes time.
pub struct Statistics(#[allow(dead_code, reason = "closing it ends the counting")] OwnedFd);

impl Statistics {
    /// Starts the measurement.
    pub fn enable() -> Result<Self, Error> {
        sys::enable_stats().map(Statistics)
    }
}

/// The cost of one program.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Instructions that the verifier examined. The verifier's limit is a million.
    pub verified_instructions: u32,
    /// Bytes of the program in the kernel's representation.
    pub translated_bytes: u32,
    /// Bytes of machine code.
    pub machine_bytes: u32,
    /// Number of runs during the measurement.
    pub runs: u64,
    /// Total time of these runs, ns.
    pub run_time_ns: u64,
}

impl Cost {
    /// Reads the cost of this program.
    pub fn of(program: BorrowedFd<'_>) -> Result<Self, Error> {
        let info = sys::program_info(program)?;
        Ok(Cost {
            verified_instructions: info.verified_insns,
            translated_bytes: info.xlated_prog_len,
            machine_bytes: info.jited_prog_len,
            runs: info.run_cnt,
            run_time_ns: info.run_time_ns,
        })
    }

    /// Returns the mean time of a run in ns, or `None` before the first run.
    pub fn ns_per_run(&self) -> Option<f64> {
        (self.runs > 0).then(|| self.run_time_ns as f64 / self.runs as f64)
    }
}

/// Returns the ids of all programs in the kernel.
pub fn loaded() -> Vec<u32> {
    core::iter::successors(sys::program_after(0), |id| sys::program_after(*id)).collect()
}

/// Returns the name and the cost of the program with this id.
pub fn by_id(id: u32) -> Result<(String, Cost), Error> {
    let program = sys::open_program(id)?;
    let name = sys::program_info(program.as_fd())?.name;
    let name = name.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0);
    Ok((name.map(char::from).collect(), Cost::of(program.as_fd())?))
}
