//! Sends segments with random options in both directions of a live flow. If a packet reaches the switch with correct
//! checksums, it must leave with correct checksums. The switch may only change the rate or insert a rate option.

use narrows_lab::{patiently, says};
use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;

use super::agent::Agent;
use super::frames::{ACK, ASKS, Dice, Port, SYN, Segment, checksums_are_correct, tcp_in};
use super::net::{Forwarding, Net};

const A: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 99, 0, 1), 4000);
const B: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 98, 0, 1), 80);
const ROUNDS: u16 = 4000;

/// Returns random options that a hostile or broken stack could send.
fn options(dice: &mut Dice) -> Vec<u8> {
    let mut bytes = Vec::new();
    let wanted = dice.below(41) as usize;
    while bytes.len() < wanted {
        let kind = [0, 1, 1, 2, 3, 4, 5, 8, 19, 29, 253, 253, 253, 254, 255][dice.below(15) as usize];
        bytes.push(kind);
        if kind == 253 && dice.below(2) == 0 {
            let code = dice.roll() as u16;
            bytes.extend_from_slice(&[6, 0x4e, 0x57, (code >> 8) as u8, code as u8]);
        } else if kind > 1 {
            // Some of these lengths fit, some are too short, and some exceed the header.
            let len = [0, 1, 2, 4, 6, 10, dice.below(256) as u8][dice.below(7) as usize];
            bytes.push(len);
            for _ in 2..len.min(12) {
                bytes.push(dice.roll() as u8);
            }
        }
    }
    bytes.truncate(40);
    bytes
}

#[test]
fn checksums_stay_correct_with_any_options() {
    patiently(|| {
        let Some(net) = Net::star_alone(Forwarding::Router, 1) else { return };
        for (network, by) in [("10.99.0.0/16", "10.77.1.1"), ("10.98.0.0/16", "10.77.9.1")] {
            says(&format!("ip -n {} route add {network} via {by}", net.name("r"))).expect("a route");
        }
        let mut switch = Agent::switch(&net, "100mbit");
        let mut dice = Dice(0x5eed);
        let (a, b) = (Port::open(&net, "s1", "r"), Port::open(&net, "c", "r"));
        let open = |port: u16| {
            let base = Segment {
                from: (A.0, port),
                to: B,
                flags: SYN,
                seq: 0,
                ack: 0,
                id: u16::MAX,
                options: &ASKS,
                offset: None,
                payload: &[],
            };
            let timestamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1];
            let answer =
                Segment { from: B, to: (A.0, port), flags: SYN | ACK, ack: 1, options: &[], ..base.clone() };
            let data = Segment {
                flags: ACK,
                seq: 1,
                ack: 1,
                options: &timestamps,
                payload: &[7; 100],
                ..base.clone()
            };
            a.send(&base.datagram());
            thread::sleep(Duration::from_millis(100));
            b.send(&answer.datagram());
            thread::sleep(Duration::from_millis(100));
            a.send(&data.datagram());
            thread::sleep(Duration::from_millis(100));
        };
        open(A.1);
        let (mut arrived, mut wrong_in, mut changed, mut longer) = (0, 0, 0, 0);
        for (from, to, source, target) in [(&a, &b, A, B), (&b, &a, B, A)] {
            let mut sent = vec![Vec::new(); usize::from(ROUNDS)];
            let drain = |sent: &[Vec<u8>], counts: &mut [u64; 4]| {
                while let Some(frame) = to.receive() {
                    let Some(got) = tcp_in(&frame) else { continue };
                    let id = usize::from(u16::from_be_bytes([got[4], got[5]]));
                    let Some(was) =
                        sent.get(id).filter(|was| !was.is_empty() && got[12..16] == source.0.octets())
                    else {
                        continue;
                    };
                    counts[0] += 1;
                    let right = checksums_are_correct(was);
                    counts[1] += u64::from(!right);
                    assert_eq!(right, checksums_are_correct(got), "in {was:02x?}\nout {got:02x?}");
                    if got.len() == was.len() {
                        let differ: Vec<_> = (20..got.len()).filter(|i| got[*i] != was[*i]).collect();
                        counts[2] += u64::from(!differ.is_empty());
                        // Only the checksum and the two bytes of a rate may change.
                        let elsewhere: Vec<_> = differ.iter().filter(|i| !(36..38).contains(*i)).collect();
                        let near = elsewhere.len() <= 2 && elsewhere.windows(2).all(|w| *w[1] == *w[0] + 1);
                        assert!(near, "in {was:02x?}\nout {got:02x?}");
                    } else {
                        counts[3] += 1;
                        assert_eq!(got.len(), was.len() + 8, "in {was:02x?}\nout {got:02x?}");
                        let options = 40..20 + usize::from(was[32] >> 4) * 4;
                        assert_eq!(got[40..46], [1, 1, 253, 6, 0x4e, 0x57], "in front of the old options");
                        assert_eq!(got[48..options.end + 8], was[options], "which stay");
                    }
                }
            };
            let mut counts = [0; 4];
            for id in 0..ROUNDS {
                let options = options(&mut dice);
                let payload = vec![0xa5; [0, 0, 0, 1, 33, 700][dice.below(6) as usize]];
                let segment = Segment {
                    from: source,
                    to: target,
                    // These flags contain no RST, which would end the flow, and no SYN, which would start another flow.
                    flags: ACK | (dice.below(2) as u8) << 3,
                    seq: dice.roll() as u32,
                    ack: dice.roll() as u32,
                    id,
                    options: &options,
                    offset: (dice.below(8) == 0).then(|| dice.below(16) as u8),
                    payload: &payload,
                };
                let mut datagram = segment.datagram();
                if dice.below(10) == 0 {
                    datagram[36] ^= 0x10;
                }
                from.send(&datagram);
                sent[usize::from(id)] = datagram;
                // A flow that has sent no data for a while gets no rate (BRF-16), so send data again and again.
                if id % 20 == 0 {
                    let data = Segment {
                        from: A,
                        to: B,
                        flags: ACK,
                        seq: 101 + 100 * u32::from(id / 20),
                        ack: 1,
                        id: u16::MAX,
                        options: &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1],
                        offset: None,
                        payload: &[7; 100],
                    };
                    a.send(&data.datagram());
                }
                if id % 50 == 0 {
                    drain(&sent, &mut counts);
                    thread::sleep(Duration::from_millis(2));
                }
            }
            for _ in 0..50 {
                thread::sleep(Duration::from_millis(10));
                drain(&sent, &mut counts);
            }
            assert!(counts[0] > u64::from(ROUNDS) * 8 / 10, "{counts:?} of {ROUNDS} arrived");
            (arrived, wrong_in) = (arrived + counts[0], wrong_in + counts[1]);
            (changed, longer) = (changed + counts[2], longer + counts[3]);
        }
        let malformed = switch.counter("malformed");
        println!(
            "{arrived} segments of {} arrived, {wrong_in} of them with wrong checksums from the start; {changed} rewritten, {longer} \
             lengthened, {malformed} malformed",
            2 * ROUNDS
        );
        assert!(switch.runs());
        assert!(malformed > 100 && changed > 50 && longer > 50);
    });
}
