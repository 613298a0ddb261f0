use super::*;
#[test]
fn dbg_spike() {
    let app = segments(3_000);
    let (from, to) = (at(300), at(1_300));
    let mut pair = Pair::new("cubic", &app, |p, now| {
        let held = p.payload > 0 && now >= from && now < to;
        if held { Fate::Late(to.since(now)) } else { Fate::Pass }
    });
    for t in [250,290,300,310,320,330,340,341,345,350,400,500,600,800,1250,1300,1320,1330,1340,1345,1350,1400] {
        pair.run_until(at(t));
        let s = &pair.sender;
        println!("{t} {:?} cwnd {} ssth {} out {} inflight {} used {} stamp {:?} lim {} appfin {} rtx {} rto {:?}", s.state, s.window.cwnd, s.window.ssthresh, s.board.packets_out(), s.board.in_flight(), s.cwnd_used, s.cwnd_stamp, s.cwnd_limited, s.app.is_finished(), s.counters.retransmits, s.rtt.rto());
    }
}
#[test]
fn dbg_reorder() {
    let app = segments(4_000);
    let mut pair = Pair::new("reno", &app, |p, _| {
        if p.payload > 0 && p.seq >= 100 && p.seq % 200 == 100 { Fate::Late(ms(5)) } else { Fate::Pass }
    });
    pair.run_until(at(60_000));
    let t = pair.times_of(900);
    println!("{t:?}");
    for a in pair.acks().filter(|a| a.at + ms(20) > t[1]-ms(6) && a.at+ms(20) <= t[1]+ms(1)).step_by(5) { println!("ack at {:?} ack {} sack {:?}", a.at+ms(20), a.packet.ack, &a.packet.sack[..a.packet.sacks as usize]); }
    for d in pair.data().filter(|s| s.at + ms(1)> t[1] && s.at <= t[1]+ms(1)).take(20) { println!("data {:?} {}", d.at, d.packet.seq); }
}
