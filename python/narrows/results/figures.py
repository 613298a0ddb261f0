"""Titles and units of the columns that summaries, comparisons and charts show."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of a figure."""

    title: str
    unit: str
    size: float
    """Size of one `unit` in the unit of the tables."""
    short: str = ""
    """The title in the terminal."""

    @property
    def axis(self) -> str:
        """The title of an axis."""
        return f"{self.title} ({self.unit})"

    @property
    def scale(self) -> float:
        """Factor that converts a value of the tables to this unit."""
        return 1.0 / self.size


HEADINGS = {
    "goodput_bps": Heading("Goodput", "Mbit/s", 1e6, "goodput"),
    "share": Heading("Share of goodput", "%", 1e-2, "share"),
    "rtt_mean_s": Heading("RTT, mean", "ms", 1e-3, "RTT mean"),
    "rtt_p95_s": Heading("RTT, p95", "ms", 1e-3, "RTT p95"),
    "retransmits": Heading("Retransmits", "packets", 1.0, "retransmits"),
    "fct_s": Heading("Completion time", "ms", 1e-3, "FCT"),
    "request_mean_s": Heading("Request time, mean", "ms", 1e-3, "request mean"),
    "utilisation": Heading("Utilisation", "%", 1e-2, "utilisation"),
    "sojourn_mean_s": Heading("Queueing, mean", "ms", 1e-3, "queueing mean"),
    "sojourn_p95_s": Heading("Queueing, p95", "ms", 1e-3, "queueing p95"),
    "dropped_packets": Heading("Drops", "packets", 1.0, "drops"),
    "random_losses": Heading("Random losses", "packets", 1.0, "random losses"),
    "marks": Heading("Marks", "packets", 1.0, "marks"),
}
"""Figures of a summary by their names in the tables."""
SAMPLED = {
    "goodput_bps": Heading("Goodput", "Mbit/s", 1e6),
    "cwnd": Heading("Window", "segments", 1.0),
    "rtt_s": Heading("RTT", "ms", 1e-3),
    "srtt_s": Heading("Smoothed RTT", "ms", 1e-3),
    "rttvar_s": Heading("Deviation of the RTT", "ms", 1e-3),
    "retransmits": Heading("Retransmissions", "packets", 1.0),
    "throughput_bps": Heading("Throughput", "Mbit/s", 1e6),
    "queue_packets": Heading("Queue", "packets", 1.0),
    # iperf3's quantities, in the units of its report. The window is in KiB, because the paper's script
    # converts it to KiB.
    "bytes": Heading("Data sent", "MB", 1e6),
    "bits_per_second": Heading("Throughput", "Mbit/s", 1e6),
    "retransmits_in_interval": Heading("Retransmissions", "packets", 1.0),
    "snd_cwnd": Heading("Window", "KiB", 1024.0),
    "rtt": Heading("RTT", "\N{MICRO SIGN}s", 1.0),
    "rttvar": Heading("Deviation of the RTT", "\N{MICRO SIGN}s", 1.0),
    "pmtu": Heading("MTU", "bytes", 1.0),
}
"""Quantities over time by their names in the tables of samples."""
