//! Draws a snapshot. The output fits a terminal of 80 x 24 characters.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table};

use super::view::{Column, View};
use crate::status::text::{mbit, ms};
use crate::status::{FlowStatus, PortStatus, Snapshot};

pub(super) fn draw(frame: &mut Frame<'_>, snapshot: &Snapshot, view: &View) {
    let ports = u16::try_from(snapshot.ports.len()).unwrap_or(u16::MAX).min(frame.area().height / 3);
    let parts = [Constraint::Length(1), Constraint::Length(ports), Constraint::Min(2), Constraint::Length(1)];
    let [head, port_list, flow_list, foot] = Layout::vertical(parts).areas(frame.area());

    let times = &snapshot.loop_times;
    let title = format!(
        "{} {}  {} flows  loop p50 {} ms p99 {} ms",
        snapshot.role,
        snapshot.name,
        snapshot.flow_count,
        ms(times.quantile(0.5)),
        ms(times.quantile(0.99))
    );
    frame.render_widget(Paragraph::new(title).style(Style::new().add_modifier(Modifier::BOLD)), head);
    let lines: Vec<_> = snapshot.ports.iter().map(|port| Line::from(port_line(port))).collect();
    frame.render_widget(Paragraph::new(lines), port_list);
    frame.render_widget(flow_table(snapshot, view), flow_list);
    let help = "q quit  s sort by the next column  r reverse  arrows, page keys, home: scroll";
    frame.render_widget(Paragraph::new(help).style(Style::new().add_modifier(Modifier::DIM)), foot);
}

fn port_line(port: &PortStatus) -> String {
    let queued: u64 = port.leaves.iter().map(|leaf| u64::from(leaf.queued_packets)).sum();
    let [rated, other, udp] = port.shares.map(mbit);
    format!(
        "{} {} Mbit/s: rated {rated} other {other} udp {udp}  queue {queued}p  {}  {}",
        port.interface,
        mbit(port.capacity),
        port.phase,
        if port.congestion == "none" { String::new() } else { format!("CONGESTED {}", port.congestion) }
    )
}

fn flow_table<'s>(snapshot: &'s Snapshot, view: &View) -> Table<'s> {
    let mark = |column, name: &str| {
        let arrow = if view.reversed { "^" } else { "v" };
        if view.column == column { format!("{name}{arrow}") } else { name.to_owned() }
    };
    let [rate, allocation, rtt, queue, leaf, flow] = Column::ALL;
    let header = Row::new([
        mark(flow, "source > destination"),
        mark(leaf, "leaf"),
        mark(rate, "Mbit/s"),
        mark(allocation, "limit"),
        mark(rtt, "RTT ms"),
        mark(queue, "queue"),
    ]);
    let row = |flow: &FlowStatus| {
        Row::new([
            format!("{} > {}", flow.source, flow.destination),
            flow.leaf.clone(),
            mbit(flow.rate),
            flow.allocation.map_or("-".to_owned(), mbit),
            flow.rtt.map_or("-".to_owned(), ms),
            flow.queued_packets.to_string(),
        ])
    };
    let widths = [Constraint::Fill(1), Constraint::Length(9)].into_iter().chain([Constraint::Length(7); 4]);
    Table::new(view.pick(&snapshot.flows).into_iter().map(row), widths)
        .header(header.style(Style::new().add_modifier(Modifier::REVERSED)))
        .column_spacing(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_control::units::{Rate, Span};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    fn flow(n: u64) -> FlowStatus {
        FlowStatus {
            source: format!("10.0.0.{n}:40000"),
            destination: "192.168.100.2:5201".into(),
            leaf: "elephant".into(),
            rate: Rate::from_bits_per_sec(n * 10_000_000),
            allocation: (n != 2).then(|| Rate::from_bits_per_sec(46_600_000)),
            rtt: (n != 3).then(|| Span::from_micros(20_300)),
            queued_packets: 7,
            ..FlowStatus::default()
        }
    }

    fn snapshot() -> Snapshot {
        let mut port = PortStatus {
            interface: "eth1".into(),
            capacity: Rate::from_bits_per_sec(100_000_000),
            phase: "measure".into(),
            congestion: "burst".into(),
            ..PortStatus::default()
        };
        port.leaves[1].queued_packets = 7;
        let (role, name) = ("switch".into(), "s1".into());
        Snapshot {
            role,
            name,
            ports: vec![port],
            flow_count: 3,
            flows: vec![flow(1), flow(3), flow(2)],
            ..Default::default()
        }
    }

    fn drawn(view: &View, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, &snapshot(), view)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    #[test]
    fn a_terminal_of_80_by_24_shows_everything() {
        let lines = drawn(&View::default(), 80, 24);
        assert_eq!(lines[0], "switch s1  3 flows  loop p50 0.00 ms p99 0.00 ms");
        assert_eq!(
            lines[1],
            "eth1 100 Mbit/s: rated 0.00 other 0.00 udp 0.00  queue 7p  measure  CONGESTED burst"[..80]
                .trim_end()
        );
        assert_eq!(
            lines[2],
            "source > destination                   leaf      Mbit/sv limit   RTT ms  queue"
        );
        assert_eq!(lines[3], "10.0.0.3:40000 > 192.168.100.2:5201    elephant  30.0    46.6    -       7");
        assert_eq!(lines[4], "10.0.0.2:40000 > 192.168.100.2:5201    elephant  20.0    -       20.30   7");
        assert!(lines[23].starts_with("q quit"));
    }

    #[test]
    fn keys_sort_reverse_scroll_and_quit() {
        let mut view = View::default();
        view.fit(3);
        let key = |code| KeyEvent::new(code, KeyModifiers::NONE);
        assert!(!view.press(key(KeyCode::Char('r'))));
        assert!(drawn(&view, 80, 24)[3].starts_with("10.0.0.1:"));
        view.press(key(KeyCode::Char('s')));
        assert!(drawn(&view, 80, 24)[2].contains("limit^"));
        view.press(key(KeyCode::PageDown));
        assert_eq!(view.first, 2, "the last flow stays visible");
        view.press(key(KeyCode::Home));
        assert_eq!(view.first, 0);
        assert!(view.press(key(KeyCode::Char('q'))));
        assert!(view.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
    }

    #[test]
    fn a_tiny_terminal_does_not_panic() {
        for (width, height) in [(1, 1), (10, 3), (20, 2)] {
            drawn(&View::default(), width, height);
        }
    }
}
