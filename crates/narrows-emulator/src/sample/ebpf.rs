//! Reads the state of BBR in eBPF (`narrows cc`) from maps with an entry for each socket.
//!
//! `narrows-agent cc list --json` describes the maps. This file contains only the names and units of the fields
//! (`crates/narrows-agent/bpf/cc/state.h`, `bounded.h`).

use std::os::fd::AsFd;

use crate::error::Error;
use crate::socket_map::SocketMap;
use crate::spec::{ControllerSpec, FieldSpec};

/// Bandwidths are packets per microsecond, times this unit.
const BW_UNIT: f64 = (1u64 << 24) as f64;
/// Gain 1.
const GAIN_UNIT: f64 = 256.0;
/// The value of a bound that is not set, and of `min_rtt_us` before the first sample.
const NONE: u32 = u32::MAX;
/// The value of `mode` in ProbeBW. The numbers of all modes are those of the simulator's phases.
const PROBE_BW: u32 = 2;

/// The maps of a controller, with the fields that are read.
#[derive(Debug)]
pub(crate) struct EbpfMaps(Vec<(SocketMap, Vec<FieldSpec>)>);

impl EbpfMaps {
    /// Opens the maps of a controller.
    ///
    /// # Errors
    /// If a map does not exist, or has no entries for sockets, or without CAP_SYS_ADMIN.
    pub(crate) fn open(spec: &ControllerSpec) -> Result<Self, Error> {
        let maps = spec.state.iter().map(|part| {
            let map = SocketMap::open(part.map);
            let map = map.map_err(Error::system(format!("map {} of {}", part.map, spec.name)))?;
            Ok((map, part.fields.clone()))
        });
        maps.collect::<Result<_, Error>>().map(EbpfMaps)
    }

    /// Reads the state of a socket of this process. Returns `None` if the socket does not use the controller.
    pub(crate) fn of(&self, socket: impl AsFd) -> Option<EbpfInfo> {
        let mut found = Vec::new();
        for (map, fields) in &self.0 {
            let value = map.of(&socket).ok()?;
            found
                .extend(fields.iter().filter_map(|field| Some((field.name.clone(), number(&value, field)?))));
        }
        Some(EbpfInfo(found))
    }
}

/// Returns the number in a field, or `None` if the value is too short.
fn number(value: &[u8], field: &FieldSpec) -> Option<u32> {
    match *value.get(field.at..field.at.checked_add(field.bytes)?)? {
        [a] => Some(a.into()),
        [a, b] => Some(u16::from_ne_bytes([a, b]).into()),
        [a, b, c, d] => Some(u32::from_ne_bytes([a, b, c, d])),
        _ => None,
    }
}

/// The state of a connection: the names and numbers of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EbpfInfo(Vec<(String, u32)>);

impl EbpfInfo {
    fn get(&self, name: &str) -> Option<u32> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, number)| *number)
    }

    /// Returns the bandwidth in use (`nrw_bw` in `model.h`).
    fn bw(&self) -> Option<u32> {
        let max = self.get("max_bw")?;
        let policed = self.get("lt_bw").filter(|_| self.get("lt_use_bw") != Some(0));
        Some(policed.unwrap_or(max).min(self.get("bw_lo").unwrap_or(NONE)))
    }

    /// Calls `trace` with variables that the simulator's BBR also traces. `packet_bytes` is the size of a full packet at
    /// L3. Variables without a field are left out.
    pub(crate) fn trace(&self, packet_bytes: f64, trace: &mut dyn FnMut(&'static str, f64)) {
        let bytes_per_second = packet_bytes * 1e6 / BW_UNIT;
        let is_set = |name: &str| self.get(name) != Some(NONE);
        let has_steps = self.get("step").is_some();
        let variables = [
            ("bw", self.bw(), bytes_per_second, true),
            ("max_bw", self.get("max_bw").filter(|_| has_steps), bytes_per_second, true),
            ("min_rtt", self.get("min_rtt_us"), 1e-6, is_set("min_rtt_us")),
            ("pacing_gain", self.get("pacing_gain"), 1.0 / GAIN_UNIT, true),
            ("cwnd_gain", self.get("cwnd_gain"), 1.0 / GAIN_UNIT, true),
            ("phase", self.get("mode"), 1.0, true),
            ("step", self.get("step"), 1.0, self.get("mode") == Some(PROBE_BW)),
            ("round", self.get("round"), 1.0, true),
            ("policed", self.get("lt_use_bw"), 1.0, true),
            ("inflight_longterm", self.get("inflight_hi"), 1.0, is_set("inflight_hi")),
            ("inflight_shortterm", self.get("inflight_lo"), 1.0, is_set("inflight_lo")),
        ];
        for (key, number, unit, has_value) in variables {
            if let Some(number) = number {
                trace(key, if has_value { f64::from(number) * unit } else { f64::NAN });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn traced(fields: &[(&str, u32)]) -> Vec<(&'static str, f64)> {
        let info = EbpfInfo(fields.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect());
        let mut found = Vec::new();
        info.trace(1500.0, &mut |key, value| found.push((key, value)));
        found
    }

    fn value(found: &[(&'static str, f64)], key: &str) -> Option<f64> {
        found.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    #[test]
    fn the_bounds_of_v3_are_traced_as_in_the_simulator() {
        let fields =
            [("max_bw", 1 << 24), ("bw_lo", 1 << 23), ("mode", 2), ("step", 1), ("inflight_hi", NONE)];
        let found = traced(&fields);
        assert_eq!(value(&found, "bw"), Some(750e6));
        assert_eq!(value(&found, "max_bw"), Some(1500e6));
        assert_eq!((value(&found, "phase"), value(&found, "step")), (Some(2.0), Some(1.0)));
        assert!(value(&found, "inflight_longterm").is_some_and(f64::is_nan));
        assert_eq!((value(&found, "inflight_shortterm"), value(&found, "policed")), (None, None));
        let startup = traced(&[("mode", 0), ("step", 0)]);
        assert!(value(&startup, "step").is_some_and(f64::is_nan), "only ProbeBW has steps");
    }

    #[test]
    fn the_bandwidth_of_v1_is_the_policers_if_it_is_in_use() {
        let fields = |is_used| traced(&[("max_bw", 1 << 24), ("lt_bw", 1 << 22), ("lt_use_bw", is_used)]);
        assert_eq!(value(&fields(0), "bw"), Some(1500e6));
        assert_eq!((value(&fields(1), "bw"), value(&fields(1), "policed")), (Some(375e6), Some(1.0)));
        assert_eq!((value(&fields(0), "max_bw"), value(&fields(0), "step")), (None, None));
    }

    proptest! {
        #[test]
        fn fields_outside_of_a_value_are_left_out(length in 0usize..16, at in any::<usize>(), bytes in 0usize..9) {
            let value = vec![1u8; length];
            let field = FieldSpec { name: "field".to_owned(), at: at % 20, bytes };
            let fits = at % 20 + bytes <= length && matches!(bytes, 1 | 2 | 4);
            prop_assert_eq!(number(&value, &field).is_some(), fits);
            let far = FieldSpec { at: usize::MAX, ..field };
            prop_assert!(bytes == 0 || number(&value, &far).is_none());
        }
    }
}
