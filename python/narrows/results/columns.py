"""Lists every column of every table: name, type, unit and meaning. Tables on disk are made from this list."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from narrows.markdown import table

_TYPES: dict[str, pa.DataType] = {
    "float": pa.float64(),
    "u8": pa.uint8(),
    "u32": pa.uint32(),
    "u64": pa.uint64(),
    "str": pa.string(),
}


@dataclass(frozen=True)
class Column:
    """Description of a column."""

    name: str
    """Name of the column in the table."""
    kind: str
    """Type of the values: float, u8, u32, u64 or str."""
    unit: str
    """Unit of the values (empty for names and counts)."""
    meaning: str
    """Meaning of the values, as a sentence for the documentation."""

    @property
    def field(self) -> pa.Field[pa.DataType]:
        """The column as a field of an Arrow schema."""
        return pa.field(self.name, _TYPES[self.kind])


def _columns(spec: str) -> tuple[Column, ...]:
    """Columns from lines of ``name | type | unit | meaning``."""
    lines = [[cell.strip() for cell in line.split("|")] for line in spec.strip().splitlines()]
    return (RUN, *(Column(*cells) for cells in lines))


RUN = Column("run", "u32", "", "Number of the run, from 0; the table `runs` has its seed and factors.")
"""The first column of every table."""

RUNS: tuple[Column, ...] = (
    RUN,
    Column("case", "str", "", "Case of the sweep; only in sweeps with cases."),
    Column("<key>", "str or float", "", "Value of the key; one column for each key in `sweep.vary`."),
    Column("seed", "u64", "", "Seed of the run."),
    Column("events", "u64", "", "Events that the simulator processed."),
    Column("packet_hops", "u64", "packets", "Packets carried over a link, summed over links."),
    Column("delivered_packets", "u64", "packets", "Data packets that reached their receiver."),
    Column("peak_flows", "u64", "flows", "Largest number of flows at one time."),
)
"""The table of runs, whose columns depend on the sweep."""

COLUMNS: dict[str, tuple[Column, ...]] = {
    "flows": _columns("""
        flow | u32 | | Number of the flow, from 0, in order of start.
        name | str | | Name; `<name>.<number>` for a flow of a group or of `arrivals`.
        cc | str | | Congestion controller, or `udp`.
        source | str | | Name of the scenario's entry from which the flow comes.
        from | str | | Sending node.
        to | str | | Receiving node.
        start_s | float | s | Time of the first SYN (UDP: of the first packet).
        end_s | float | s | Time of the flow's end; NaN if the run ended first.
        size_bytes | u64 | bytes | Application bytes to send; 0 for a flow without end.
        fct_s | float | s | Time from first SYN to acknowledged last byte (MET-70); NaN if unfinished.
        fct_recv_s | float | s | Time from the first SYN until the receiver has the last byte.
        ideal_fct_s | float | s | Completion time on an empty network (MET-71).
        rtt_empty_s | float | s | RTT of the empty network, transmission times included (MET-10).
        delivered_bytes | u64 | bytes | Application bytes delivered in order in the whole run.
        goodput_bps | float | bit/s | Goodput (MET-2) in the flow's part of the measurement interval.
        sent_packets | u64 | packets | Data segments sent, retransmissions included.
        retransmits | u64 | packets | Data segments retransmitted.
        spurious | u64 | packets | Duplicates that DSACKs reported, including copies that the network made.
        timeouts | u64 | | Retransmission timeouts.
        rtt_mean_s | float | s | Mean RTT over ACKs (kernel: over segments), in the measurement interval.
        rtt_p50_s | float | s | Median RTT; NaN for flows that are not sampled.
        rtt_p95_s | float | s | 95th percentile of the RTT.
        rtt_p99_s | float | s | 99th percentile of the RTT.
        rtt_max_s | float | s | Largest RTT.
        rtt_jitter_s | float | s | Mean absolute difference of consecutive RTT samples (MET-14).
        min_rtt_s | float | s | Smallest RTT of the whole run.
        sent_bytes | u64 | bytes | L3 bytes that both ends sent in the whole run; 0: not counted.
        signal_bytes | u64 | bytes | Bytes of `sent_bytes` in headers, echoes and rate options (MET-82).
        delay_mean_s | float | s | Mean one-way delay of data sent only once (MET-13); NaN: not measured.
    """),
    "flow_samples": _columns("""
        t_s | float | s | End of the interval.
        flow | u32 | | Number of the flow.
        goodput_bps | float | bit/s | Goodput in the interval.
        send_bps | float | bit/s | L3 rate sent in the interval, retransmissions included (MET-3).
        cwnd | float | segments | Congestion window. This and later columns refer to the end of the interval.
        ssthresh | float | segments | Slow-start threshold; NaN while infinite.
        pacing_bps | float | bit/s | Pacing rate, L3, set by the congestion controller; NaN if it sets none.
        srtt_s | float | s | Smoothed RTT.
        rttvar_s | float | s | Smoothed mean deviation of the RTT, which iperf3 calls variance (MET-14).
        rtt_s | float | s | Latest RTT sample.
        in_flight | float | segments | Segments in flight.
        retransmits | u64 | packets | Retransmissions since the start.
        allocation_bps | float | bit/s | Smallest rate that a switch allots to the flow; NaN if none does.
        state | u8 | | 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss (Linux's names).
    """),
    "links": _columns("""
        link | u32 | | Number of the directed link.
        name | str | | Name of the link.
        capacity_bps | float | bit/s | Mean L3 capacity in the measurement interval.
        utilisation | float | 0..1 | L3 bits / capacity, at most 1, in the measurement interval (MET-5).
        throughput_bps | float | bit/s | L3 rate carried in the measurement interval (MET-1).
        offered_packets | u64 | packets | Packets offered to the queue in the whole run.
        dropped_packets | u64 | packets | Packets that the queue dropped in the whole run.
        drop_rate | float | 0..1 | Dropped packets divided by offered packets in the whole run (MET-20).
        random_losses | u64 | packets | Packets that the link lost behind the queue in the whole run (MET-21).
        marks | u64 | packets | Packets marked CE in the whole run.
        sojourn_mean_s | float | s | Mean time in the queue in the measurement interval (MET-11).
        sojourn_p50_s | float | s | Median time in the queue; NaN for links that are not sampled.
        sojourn_p95_s | float | s | 95th percentile of the time in the queue.
        sojourn_p99_s | float | s | 99th percentile of the time in the queue.
        sojourn_max_s | float | s | Longest time in the queue.
        backlog_mean_packets | float | packets | Mean number of packets waiting, by Little's law.
    """),
    "link_samples": _columns("""
        t_s | float | s | End of the interval.
        link | u32 | | Number of the directed link.
        throughput_bps | float | bit/s | L3 rate carried in the interval.
        capacity_bps | float | bit/s | Mean L3 capacity in the interval.
        queue_packets | float | packets | Packets waiting at the end of the interval.
        queue_bytes | float | bytes | L3 bytes waiting at the end of the interval.
        drops | u64 | packets | Packets that the queue dropped since the start of the run.
        marks | u64 | packets | Packets marked CE since the start of the run.
        random_losses | u64 | packets | Packets lost behind the queue since the start of the run.
    """),
    "signalling": _columns("""
        link | u32 | | Number of the directed link of a controlled port.
        name | str | | Name of the link.
        rate_controller | str | | Kind of the rate controller.
        duration_s | float | s | Length of the run. The columns below count over this time.
        rewritten_data | u64 | packets | Packets whose congestion header the port changed.
        rewritten_acks | u64 | packets | Packets in the reverse direction into which the port wrote a rate.
        messages | u64 | | Messages between the port and the SDN controller, both ways.
        message_flows | u64 | | Flows, and destinations of newcomers, that these messages describe.
        notices | u64 | | Messages with a rate to sources.
    """),
    "flow_records": _columns("""
        link | u32 | | Number of the directed link of a controlled port.
        start_s | float | s | Time at which the flow last began at the port.
        use_bps | float | bit/s | L3 rate that the flow could use (the link's rate if the port limited it).
        limited | u8 | | 1 if the application limited the flow, else 0.
        source_high | u32 | | First 24 bits of the source's address (simulator: number of the node / 256).
        source_low | u32 | | Next 8 bits, or 24 bits of an IPv6 address (simulator: the rest).
        destination_high | u32 | | The same as `source_high`, but for the destination.
        destination_low | u32 | | The same as `source_low`, but for the destination.
        ip_version | u32 | | 4 or 6 (simulator: 4).
        service | u32 | | Smaller port; 0 if above 32767 (simulator: `service`, or a number from 65536 on).
        protocol | u32 | | 6: TCP, 17: UDP.
        second_of_day | u32 | s | Time of day (UTC) of `start_s`.
    """),
    "distributions": _columns("""
        entity | str | | `flow` or `link`.
        id | u32 | | Number of the flow or link.
        quantity | str | | `rtt` of a flow, `sojourn` of a link.
        quantile | float | 0..1 | Level of the quantile: 0, 0.01, ... 1, and 0.995, 0.999, 0.9999.
        value_s | float | s | Value of the quantile in the measurement interval, to within 0.8 %.
    """),
    "events": _columns("""
        t_s | float | s | Time of the event.
        kind | str | | Kind of the event, in the words of the rate controller.
        entity | str | | Flow or link of the event. A flow that has ended is named by its group and its slot.
        value | float | | Value of the event.
    """),
    "traces": _columns("""
        t_s | float | s | Time of the sample.
        entity | str | | The flow or link of the congestion or rate controller.
        key | str | | Name of a variable of that controller.
        value | float | | Value of the variable.
    """),
    "acks": _columns("""
        t_s | float | s | Time at which the sender processed the ACK.
        flow | u32 | | Number of the flow.
        ack | u64 | | Number of the ACK within the flow, from 1. Gaps are ACKs without a row.
        acked | u32 | segments | Segments that the ACK newly reported as delivered, cumulatively or by SACK.
        lost | u32 | segments | Segments that were newly marked lost.
        rtt_s | float | s | RTT sample of the ACK (NaN: none).
        srtt_s | float | s | Smoothed RTT after the ACK.
        delivery_bps | float | bit/s | Delivery-rate sample of the ACK, payload (NaN: none).
        app_limited | u8 | | 1 if the application limited this sample, else 0.
        in_flight | u32 | packets | Packets in flight after the ACK, before the packets that it releases.
        cwnd | u32 | packets | Congestion window after the ACK.
        ssthresh | float | packets | Slow-start threshold (NaN: none yet).
        pacing_bps | float | bit/s | L3 pacing rate (NaN: the flow is not paced).
        state | u8 | | State of loss recovery, as in `flow_samples`.
        phase | float | | Phase of BBR, as its variable `phase` in `traces` (NaN: other controllers).
    """),
    "requests": _columns("""
        flow | u32 | | Number of the flow.
        request | u32 | | Number of the request within the flow, from 0.
        requested_s | float | s | Time at which the receiver sent the request.
        received_s | float | s | Time at which the receiver had the whole object (NaN: incomplete).
        size_bytes | u64 | bytes | Size of the object.
    """),
}
"""The columns of every table except `runs`."""


def markdown() -> str:
    """The tables for docs/reference/results.md."""
    parts = []
    for name, columns in {"runs": RUNS, **COLUMNS}.items():
        # Omit the first column, which is the same in all tables.
        shown = columns if name == "runs" else columns[1:]
        rows = [(f"`{column.name}`", column.kind, column.unit or "-", column.meaning) for column in shown]
        parts += [f"### {name}", table(["column", "type", "unit", "meaning"], rows)]
    return "\n\n".join(parts) + "\n"
