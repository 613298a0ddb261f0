//! The switch's eBPF program, run in the kernel on single packets (BPF_PROG_TEST_RUN). Needs root.

mod life;
mod rig;
mod stamping;
