//! Tells other programs where the state of a connection is: in which maps, and at which offsets of their values.
//!
//! Only C defines the layout (`bpf/cc/state.h`, `bounded.h`). libbpf-cargo generates the Rust types from it.

use core::mem::{offset_of, size_of};

use serde::Serialize;

use super::load::skeleton::types::{nrw_bbr, nrw_bounded, nrw_sample};

/// The names of the maps.
const BBRS: &str = "nrw_bbrs";
const BOUNDEDS: &str = "nrw_boundeds";

/// A map with an entry for each socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StateMap {
    /// The map's id.
    pub map: u32,
    /// The fields of the map's values that other programs may read.
    pub fields: Vec<StateField>,
}

/// A field with an unsigned number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StateField {
    /// The field's name.
    pub name: &'static str,
    /// Offset in bytes.
    pub at: usize,
    /// Size in bytes.
    pub bytes: usize,
}

/// Returns the size of a member.
const fn size<T, U>(_: fn(&T) -> &U) -> usize {
    size_of::<U>()
}

/// Expands to a field with this name.
macro_rules! field {
    ($name:literal, $type:ty, $($member:ident).+) => {
        StateField {
            name: $name,
            at: offset_of!($type, $($member).+),
            bytes: size(|all: &$type| &all.$($member).+),
        }
    };
}

/// Returns the fields of the map with this name, or `None` if its values are not state of connections. Two fields
/// depend on the variant: in v2 and v3 (`is_bounded`), a bound on the bandwidth and the step of ProbeBW; in all other
/// variants, the result of the detection of policers.
pub(super) fn fields(map: &str, is_bounded: bool) -> Option<Vec<StateField>> {
    let mut fields = match map {
        BBRS => vec![
            StateField {
                name: "max_bw",
                at: offset_of!(nrw_bbr, max_bw) + offset_of!(nrw_sample, bw),
                bytes: size(|sample: &nrw_sample| &sample.bw),
            },
            field!("min_rtt_us", nrw_bbr, min_rtt_us),
            field!("round", nrw_bbr, round),
            field!("pacing_gain", nrw_bbr, pacing_gain),
            field!("cwnd_gain", nrw_bbr, cwnd_gain),
            field!("mode", nrw_bbr, mode),
        ],
        BOUNDEDS if is_bounded => {
            return Some(vec![
                field!("inflight_hi", nrw_bounded, now.inflight_hi),
                field!("inflight_lo", nrw_bounded, now.inflight_lo),
            ]);
        }
        _ => return None,
    };
    fields.extend(if is_bounded {
        [field!("bw_lo", nrw_bbr, bw_lo), field!("step", nrw_bbr, cycle)]
    } else {
        [field!("lt_use_bw", nrw_bbr, lt_use_bw), field!("lt_bw", nrw_bbr, lt_bw)]
    });
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fields_are_where_the_c_header_puts_them() {
        let found = fields(BBRS, true).expect("fields");
        let at = |name| found.iter().find(|f| f.name == name).map(|f| (f.at, f.bytes));
        assert_eq!(at("max_bw"), Some((4, 4)));
        assert_eq!(at("min_rtt_us"), Some((24, 4)));
        assert_eq!(at("round"), Some((28, 4)));
        assert_eq!(at("pacing_gain").map(|f| f.1), Some(2));
        assert_eq!(at("step").map(|f| f.1), Some(1));
    }

    #[test]
    fn only_v2_and_v3_have_bounds_and_steps() {
        let names = |map, is_bounded| -> Vec<_> {
            fields(map, is_bounded).unwrap_or_default().iter().map(|field| field.name).collect()
        };
        assert!(names(BBRS, true).contains(&"step") && !names(BBRS, false).contains(&"step"));
        assert!(names(BOUNDEDS, false).is_empty() && names(BOUNDEDS, true).contains(&"inflight_hi"));
        assert!(names("nrw_cc", true).is_empty());
    }
}
