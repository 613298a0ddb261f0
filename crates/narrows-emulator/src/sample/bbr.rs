//! Reads `struct tcp_bbr_info` (linux/inet_diag.h), in which Linux's BBR v1 reports its state.

use std::os::fd::AsFd;

use crate::raw;

/// Length of `struct tcp_bbr_info`. Google's modules of BBR v2 and v3 report a longer structure, and their gains have
/// other meanings. The structures of other algorithms (`union tcp_cc_info`) are shorter.
const LENGTH: usize = 20;
/// Size of the buffer for the structure of any algorithm. It is larger than `LENGTH`, because the kernel cuts a
/// structure that does not fit.
const BUFFER_BYTES: usize = 256;

/// Gain 1 in Linux's fixed-point numbers (`BBR_UNIT`, net/ipv4/tcp_bbr.c).
const UNIT: u32 = 256;
/// `bbr_high_gain`: 2885/1000 of a unit, rounded down, plus 1.
const HIGH_GAIN: u32 = 739;
/// `bbr_drain_gain`: 1000/2885 of a unit, rounded down.
const DRAIN_GAIN: u32 = 88;
/// `bbr_cwnd_gain`.
const PROBE_BW_CWND_GAIN: u32 = 2 * UNIT;
/// The different values in `bbr_pacing_gain`. If a policer was detected, the gain is 1.
const PROBE_BW_PACING_GAINS: [u32; 3] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT];

/// The phases of BBR v1. Their numbers are the same as in the traces of the simulator's BBR.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Startup = 0,
    Drain = 1,
    ProbeBw = 2,
    ProbeRtt = 3,
}

impl Phase {
    /// Returns the phase with these gains (`bbr_update_gains`), or `None` if no phase has these gains.
    pub(crate) fn of_gains(pacing: u32, cwnd: u32) -> Option<Phase> {
        match (pacing, cwnd) {
            (HIGH_GAIN, HIGH_GAIN) => Some(Phase::Startup),
            (DRAIN_GAIN, HIGH_GAIN) => Some(Phase::Drain),
            (UNIT, UNIT) => Some(Phase::ProbeRtt),
            (_, PROBE_BW_CWND_GAIN) if PROBE_BW_PACING_GAINS.contains(&pacing) => Some(Phase::ProbeBw),
            _ => None,
        }
    }
}

/// The state of a connection with BBR v1.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct BbrInfo {
    /// The estimated bandwidth in payload bytes/s: packets per second times the payload of a full segment.
    pub(crate) bandwidth: u64,
    /// The estimated propagation time in microseconds; `None` before the first RTT sample.
    pub(crate) min_rtt_us: Option<u32>,
    /// Gains in units of 1/256.
    pub(crate) pacing_gain: u32,
    pub(crate) cwnd_gain: u32,
}

impl BbrInfo {
    /// Reads the state of a socket. Returns `None` if the socket does not use the kernel's BBR v1.
    pub(crate) fn of(socket: impl AsFd) -> Option<Self> {
        let mut bytes = [0u8; BUFFER_BYTES];
        let n = raw::get_option(socket, libc::IPPROTO_TCP, libc::TCP_CC_INFO, &mut bytes).ok()?;
        BbrInfo::parse(bytes.get(..n)?)
    }

    /// Parses the kernel's bytes. Returns `None` if they are not the structure of BBR v1.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LENGTH] = bytes.try_into().ok()?;
        let u32_at = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Some(BbrInfo {
            bandwidth: u64::from(u32_at(4)) << 32 | u64::from(u32_at(0)),
            min_rtt_us: Some(u32_at(8)).filter(|&us| us != u32::MAX),
            pacing_gain: u32_at(12),
            cwnd_gain: u32_at(16),
        })
    }

    /// Calls `trace` with the variables that the simulator's BBR v1 also traces. `payload_to_l3` is the ratio of L3
    /// bytes to payload bytes. The phase is left out if it is unknown.
    ///
    /// Before the first bandwidth sample, all variables are left out, because the gains do not belong to the phase. In
    /// the handshake, `tcp_ack` calls BBR before `bbr_init`. The state is all zeros then, so `min_rtt` seems to be old,
    /// and BBR sets the gains of ProbeRTT. `bbr_init` returns to Startup, but leaves the gains until the next ACK.
    pub(crate) fn trace(&self, payload_to_l3: f64, trace: &mut dyn FnMut(&'static str, f64)) {
        if self.bandwidth == 0 {
            return;
        }
        let gain = |gain: u32| f64::from(gain) / f64::from(UNIT);
        trace("bw", self.bandwidth as f64 * payload_to_l3);
        trace("min_rtt", self.min_rtt_us.map_or(f64::NAN, |us| f64::from(us) / 1e6));
        trace("pacing_gain", gain(self.pacing_gain));
        trace("cwnd_gain", gain(self.cwnd_gain));
        if let Some(phase) = Phase::of_gains(self.pacing_gain, self.cwnd_gain) {
            trace("phase", f64::from(phase as u8));
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use narrows_control::congestion::bbr::probe_rtt::ProbeRtt;
    use narrows_control::congestion::bbr::v1::phase::Phase as Simulated;
    use proptest::prelude::*;

    /// Returns the bytes of a structure with these fields.
    pub(crate) fn bytes(fields: [u32; 5]) -> Vec<u8> {
        fields.iter().flat_map(|field| field.to_ne_bytes()).collect()
    }

    #[test]
    fn the_gains_of_linux_give_the_phases_of_linux() {
        for (pacing, cwnd, phase) in [
            (739, 739, Some(Phase::Startup)),
            (88, 739, Some(Phase::Drain)),
            (320, 512, Some(Phase::ProbeBw)),
            (192, 512, Some(Phase::ProbeBw)),
            (256, 512, Some(Phase::ProbeBw)),
            (256, 256, Some(Phase::ProbeRtt)),
            (0, 0, None),
            (256, 739, None),
            (128, 512, None), // Drain of BBR v3
            (230, 512, None), // Down of BBR v3
            (256, 128, None), // ProbeRTT of BBR v3
        ] {
            assert_eq!(Phase::of_gains(pacing, cwnd), phase, "{pacing}, {cwnd}");
        }
    }

    #[test]
    fn the_numbers_of_the_phases_are_those_of_the_simulator() {
        assert_eq!(Phase::Startup as u32, Simulated::Startup.number());
        assert_eq!(Phase::Drain as u32, Simulated::Drain.number());
        assert_eq!(Phase::ProbeRtt as u32, Simulated::ProbeRtt(ProbeRtt::default()).number());
    }

    #[test]
    fn the_traced_variables_have_the_simulators_units() {
        let info = BbrInfo::parse(&bytes([5_000_000, 1, 40_000, 320, 512])).expect("the structure of BBR v1");
        assert_eq!(info.bandwidth, (1 << 32) + 5_000_000);
        let mut found = Vec::new();
        info.trace(2.0, &mut |key, value| found.push((key, value)));
        let bw = 2.0 * ((1u64 << 32) + 5_000_000) as f64;
        let expected =
            [("bw", bw), ("min_rtt", 0.04), ("pacing_gain", 1.25), ("cwnd_gain", 2.0), ("phase", 2.0)];
        assert_eq!(found, expected);
    }

    #[test]
    fn unknown_variables_are_left_out_or_nan() {
        let traced = |fields| {
            let info = BbrInfo::parse(&bytes(fields)).expect("the structure of BBR v1");
            let mut found = Vec::new();
            info.trace(1.0, &mut |key, value| found.push((key, value)));
            found
        };
        let found = traced([1, 0, u32::MAX, 0, 0]);
        assert!(found.iter().all(|(key, _)| *key != "phase"), "{found:?}");
        assert!(found.iter().any(|(key, value)| *key == "min_rtt" && value.is_nan()), "{found:?}");
        assert_eq!(traced([0, 0, 40_000, 256, 256]), [], "the handshake leaves the gains of ProbeRTT");
    }

    proptest! {
        #[test]
        fn only_bytes_of_the_structures_length_are_parsed(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(BbrInfo::parse(&bytes).is_some(), bytes.len() == LENGTH);
        }
    }
}
