//! Tests VLAN tags outside the buffer, where drivers and VLAN interfaces put them (`skb->vlan_tci`).
#![allow(unsafe_code, reason = "libbpf-rs has no wrapper for programs made of single instructions")]

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use libbpf_sys::{bpf_insn, bpf_map_create_opts, bpf_prog_load_opts, bpf_test_run_opts};
use narrows_agent::switch::table::{FlowTable, Tags};
use narrows_control::feedback::option::{Format, read};
use narrows_control::rate::RateOption;
use narrows_control::units::Rate;

use crate::rig::*;

/// A program that tags a packet and then runs the switch program. It is needed because BPF_PROG_TEST_RUN refuses a
/// context with a tag.
struct Tagger {
    program: OwnedFd,
    // The kernel empties the map when its last descriptor is closed.
    _next: MapHandle,
}

impl Tagger {
    fn new(rig: &Rig, vlan: u16) -> Tagger {
        let size = |bytes: usize| bytes as libbpf_sys::size_t;
        let opts = bpf_map_create_opts { sz: size(size_of::<bpf_map_create_opts>()), ..Default::default() };
        let next = MapHandle::create(MapType::ProgArray, Some("next"), 4, 4, 1, &opts).unwrap();

        let insn = |code: u8, (dst, src): (u8, u8), imm: i32| {
            let mut insn = bpf_insn { code, imm, ..Default::default() };
            insn.set_dst_reg(dst);
            insn.set_src_reg(src);
            insn
        };
        // Opcodes: 64-bit move of a register, 64-bit move of a constant, call, exit, and load of a 64-bit constant (two
        // instructions).
        let (copy, set, call, exit, wide) = (0xbf, 0xb7, 0x85, 0x95, 0x18);
        let map = libbpf_sys::BPF_PSEUDO_MAP_FD as u8;
        let program = [
            insn(copy, (6, 1), 0),
            insn(set, (2, 0), i32::from(0x8100_u16.to_be())),
            insn(set, (3, 0), i32::from(vlan)),
            insn(call, (0, 0), libbpf_sys::BPF_FUNC_skb_vlan_push as i32),
            insn(copy, (1, 6), 0),
            insn(wide, (2, map), next.as_fd().as_raw_fd()),
            insn(0, (0, 0), 0),
            insn(set, (3, 0), 0),
            insn(call, (0, 0), libbpf_sys::BPF_FUNC_tail_call as i32),
            // These instructions run only if the call fails.
            insn(set, (0, 0), DROP),
            insn(exit, (0, 0), 0),
        ];
        let mut opts = bpf_prog_load_opts {
            sz: size(size_of::<bpf_prog_load_opts>()),
            expected_attach_type: libbpf_sys::BPF_TCX_EGRESS,
            ..Default::default()
        };
        // SAFETY: the strings end with NUL, the length is the number of instructions, and the structure is initialised.
        let fd = unsafe {
            libbpf_sys::bpf_prog_load(
                libbpf_sys::BPF_PROG_TYPE_SCHED_CLS,
                c"tagger".as_ptr(),
                c"GPL".as_ptr(),
                program.as_ptr(),
                size(program.len()),
                &raw mut opts,
            )
        };
        assert!(fd >= 0, "{}", std::io::Error::from_raw_os_error(-fd));
        let switch = rig.switch.program().as_raw_fd();
        next.update(&0_u32.to_ne_bytes(), &switch.to_ne_bytes(), MapFlags::ANY).unwrap();
        // SAFETY: the kernel has just opened the descriptor, and nothing else owns it.
        Tagger { program: unsafe { OwnedFd::from_raw_fd(fd) }, _next: next }
    }

    /// Returns the program's verdict and the packet without the tag.
    fn send(&self, rig: &Rig, port: u8, packet: &[u8]) -> (i32, Vec<u8>) {
        let mut context = [0_u32; 48];
        // `ifindex` of `struct __sk_buff`.
        context[10] = rig.ifindex[usize::from(port)];
        let mut out = vec![0; packet.len() + 256];
        let mut opts = bpf_test_run_opts {
            sz: size_of::<bpf_test_run_opts>() as _,
            data_in: packet.as_ptr().cast(),
            data_size_in: packet.len() as u32,
            data_out: out.as_mut_ptr().cast(),
            data_size_out: out.len() as u32,
            ctx_in: context.as_ptr().cast(),
            ctx_size_in: size_of_val(&context) as u32,
            ..Default::default()
        };
        // SAFETY: each buffer has the given length and outlives the call.
        let code = unsafe { libbpf_sys::bpf_prog_test_run_opts(self.program.as_raw_fd(), &raw mut opts) };
        assert_eq!(code, 0, "{}", std::io::Error::from_raw_os_error(-code));
        out.truncate(opts.data_size_out as usize);
        (opts.retval as i32, out)
    }
}

/// Returns the frame without its first tag.
fn without_tag(packet: &Packet) -> Vec<u8> {
    let mut frame = packet.bytes();
    frame.drain(12..16);
    frame
}

#[test]
fn an_offloaded_tag_is_the_same_as_a_tag_in_the_frame() {
    let Some(rig) = rig() else { return };
    rig.grant(&[1_250_000]);
    // The outer tag is outside the buffer.
    for (shape, vlan) in [(Shape::Vlan, 5), (Shape::QinQ, 7)] {
        let tagger = Tagger::new(&rig, vlan);
        let flow = Packet::new(shape, 40_000);
        let syn = flow.clone().flags(SYN).options(&[SYN_OPTIONS, &option(65535)].concat());
        let sent = without_tag(&syn);
        assert_eq!(tagger.send(&rig, DATA, &sent), (PASS, sent), "{shape:?}");

        let answer = without_tag(&flow.clone().reversed().flags(SYN | ACK).options(SYN_OPTIONS));
        let (verdict, answer) = tagger.send(&rig, ACKS, &answer);
        let (l3, l4) = flow.offsets();
        let (l3, l4) = (l3 - 4, l4 - 4);
        let received = read(&answer[l4..], Format::Experimental).option;
        assert_eq!(verdict, PASS);
        assert_eq!(received, RateOption::Assigned(Rate::from_bytes_per_sec(1_250_000)), "{shape:?}");
        assert!(checksums_are_correct(&answer, (l3, l4)));

        let slot = rig.slot_of(&flow).expect("a slot");
        let vlan = flow.key().vlan;
        assert_eq!(rig.switch.tags(slot), Tags { vlan, mark: 0 });
    }
}

#[test]
fn an_offloaded_tag_in_front_of_two_tags_is_one_too_many() {
    let Some(rig) = rig() else { return };
    let flow = Packet::new(Shape::QinQ, 40_000).payload(100);
    let frame = flow.bytes();
    assert_eq!(Tagger::new(&rig, 9).send(&rig, DATA, &frame), (PASS, frame));
    let counters = rig.data_port().counters();
    assert_eq!((counters.unopened[0], counters.arrived_packets), (1, [0; 4]));
}
