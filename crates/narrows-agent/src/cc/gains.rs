//! Runs the gain model in the kernel, for tests that compare it with the simulator's model.

use std::mem::MaybeUninit;

use libbpf_rs::ProgramInput;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};

use super::error::REMEDY;
use super::load::{CcSkelBuilder, check};
use super::{CcError, Variant};

/// Returns P_up and P_down, in units of 1/256, for each omega, in units of 1/1024. The kernel computes them with the
/// congestion control algorithms' own functions.
///
/// # Errors
/// If the kernel refuses the programs. The message is one line.
pub fn gains(variant: Variant, omegas: impl IntoIterator<Item = u32>) -> Result<Vec<[u32; 2]>, CcError> {
    check()?;
    let what = "running the gain model in the kernel";
    let refused = || CcError::refused(what, REMEDY);
    let mut storage = MaybeUninit::uninit();
    let mut open = CcSkelBuilder::default().open(&mut storage).map_err(refused())?;
    open.maps.nrw_cc.set_autocreate(false).map_err(refused())?;
    for mut program in open.open_object_mut().progs_mut() {
        let wanted = program.name() == "nrw_gains";
        program.set_autoload(wanted);
    }
    let skel = open.load().map_err(refused())?;
    let mut gains = Vec::new();
    for omega in omegas {
        // struct nrw_gains_run
        let mut words: Vec<u8> =
            [variant.number(), omega, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let input = ProgramInput { context_in: Some(&mut words), ..ProgramInput::default() };
        skel.progs.nrw_gains.test_run(input).map_err(refused())?;
        let word = |at: usize| {
            let bytes = words.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u32::from_ne_bytes)
        };
        gains.push([word(8), word(12)]);
    }
    Ok(gains)
}
