//! Runs the gain model and BBQ's test for a queue in the kernel. Tests compare the results with the simulator's.

use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{ProgramInput, ProgramMut};

use super::error::REMEDY;
use super::load::skeleton::{CcSkel, CcSkelBuilder};
use super::load::{check, configure};
use super::{CcError, Options, Variant};

/// Returns P_up and P_down for each omega. Gains are in units of 1/256, and omega is in units of 1/1024. The kernel
/// computes them with the code of the congestion control algorithms.
///
/// # Errors
/// If the kernel refuses the programs. The message is one line.
pub fn gains(variant: Variant, omegas: impl IntoIterator<Item = u32>) -> Result<Vec<[u32; 2]>, CcError> {
    // struct nrw_gains_run
    let inputs = omegas.into_iter().map(|omega| [variant.number(), omega, 0, 0]);
    let results = run(variant, "nrw_gains", |skel| &mut skel.progs.nrw_gains, inputs)?;
    Ok(results.into_iter().map(|[.., up, down]| [up, down]).collect())
}

/// BBQ's decision when a probe begins.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Whether the probe is short. A short probe ends only when its time is over.
    pub is_short: bool,
    /// Minimum length, us.
    pub length_us: u32,
}

/// Returns BBQ's decision for a propagation time and the mean RTTs of up to four rounds before the probe. All times are
/// in us, and an RTT of 0 means "no round". The kernel decides with the code of the congestion control algorithm.
///
/// # Errors
/// If the kernel refuses the programs. The message is one line.
pub fn probe(cases: impl IntoIterator<Item = (u32, [u32; 4])>) -> Result<Vec<Probe>, CcError> {
    // struct nrw_bbq_run
    let inputs = cases.into_iter().map(|(min_rtt, [a, b, c, d])| [min_rtt, a, b, c, d, 0, 0]);
    let results = run(Variant::Bbq, "nrw_bbq", |skel| &mut skel.progs.nrw_bbq, inputs)?;
    Ok(results
        .into_iter()
        .map(|[.., is_short, length_us]| Probe { is_short: is_short != 0, length_us })
        .collect())
}

/// Loads one program and runs it once for each input. The program's context is a structure of `N` words. Returns the
/// contexts after the runs.
fn run<const N: usize>(
    variant: Variant,
    name: &str,
    program: impl for<'a, 'o> Fn(&'a mut CcSkel<'o>) -> &'a mut ProgramMut<'o>,
    inputs: impl Iterator<Item = [u32; N]>,
) -> Result<Vec<[u32; N]>, CcError> {
    check()?;
    let refused = || CcError::refused("running a program in the kernel", REMEDY);
    let mut storage = MaybeUninit::uninit();
    let mut open = CcSkelBuilder::default().open(&mut storage).map_err(refused())?;
    open.maps.nrw_cc.set_autocreate(false).map_err(refused())?;
    for mut program in open.open_object_mut().progs_mut() {
        let wanted = program.name() == name;
        program.set_autoload(wanted);
    }
    configure(&mut open, variant, Options::default());
    let mut skel = open.load().map_err(refused())?;
    let mut results = Vec::new();
    for words in inputs {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let input = ProgramInput { context_in: Some(&mut bytes), ..ProgramInput::default() };
        program(&mut skel).test_run(input).map_err(refused())?;
        let mut words = bytes.chunks_exact(4).filter_map(|word| word.try_into().ok().map(u32::from_ne_bytes));
        results.push([(); N].map(|()| words.next().unwrap_or(0)));
    }
    Ok(results)
}
