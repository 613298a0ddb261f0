//! The switch's eBPF program, run in the kernel on single packets (BPF_PROG_TEST_RUN). Needs root.

mod designated;
mod forged;
mod life;
mod offloaded;
mod outside;
mod real;
mod rig;
mod stamping;
