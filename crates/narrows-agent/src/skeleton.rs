//! The generated Rust code of the eBPF programs.

/// Includes the module that libbpf-cargo generates from `bpf/NAME` (build.rs).
macro_rules! skeleton {
    ($name:literal) => {
        #[allow(
            clippy::all,
            dead_code,
            missing_docs,
            non_camel_case_types,
            non_snake_case,
            unreachable_pub,
            unsafe_code,
            reason = "generated"
        )]
        pub mod skeleton {
            include!(concat!(env!("OUT_DIR"), "/", $name, ".skel.rs"));
        }
    };
}
