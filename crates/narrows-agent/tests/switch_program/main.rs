//! Tests of the switch's eBPF program. The kernel runs it on single packets (BPF_PROG_TEST_RUN). The tests need root.

mod designated;
mod forged;
mod life;
mod offloaded;
mod outside;
mod real;
mod rig;
mod stamping;
