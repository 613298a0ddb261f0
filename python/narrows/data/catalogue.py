"""The catalogue of data sets: files, checksums, licences and citations.

Each checksum was computed from the upstream file at the commit that the file's URL names. A file without
a URL cannot be downloaded by `narrows data fetch`.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Columns:
    """Some columns of one CSV file in a ZIP archive, written as a separate CSV file."""

    member: str
    """Path of the CSV file in the archive."""
    row: str
    """Name of the result's first column, which numbers the rows from 0."""
    columns: dict[str, str]
    """For each further column of the result, the column's name in the archive's file."""


@dataclass(frozen=True)
class DataFile:
    """One file of a data set."""

    path: str
    """Path below the data folder."""
    size: int
    """Size in bytes (0: unknown)."""
    sha256: str = ""
    """SHA-256 of the file (empty: unknown)."""
    url: str = ""
    """Address of the download (empty: no download)."""
    download_sha256: str = ""
    """SHA-256 of the download, for a file that is extracted from its download."""
    extract: Columns | None = None
    """How the file is extracted from the download (None: the download itself is the file)."""


@dataclass(frozen=True)
class DataSet:
    """Files that were recorded and published together."""

    name: str
    title: str
    licence: str
    source: str
    citation: str
    files: tuple[DataFile, ...]
    by_hand: str = field(default="")
    """Instructions for a data set that cannot be downloaded by `narrows data fetch`."""

    @property
    def is_fetchable(self) -> bool:
        """Whether `narrows data fetch` can download all files."""
        return all(file.url and file.sha256 for file in self.files)


_MAHIMAHI = (
    "https://raw.githubusercontent.com/ravinet/mahimahi/ae477d437615b972217498ba52be07db17a15618/traces/"
)
_UCC = "https://raw.githubusercontent.com/uccmisl/5Gdataset/306d92eba81cb4f1195d8b8eba625666a02a10ec/"


def _mahimahi(name: str, size: int, sha256: str) -> DataFile:
    return DataFile(f"traces/{name}", size, sha256, _MAHIMAHI + name)


DATA_SETS = (
    DataSet(
        name="mahimahi-lte",
        title="Capacity of US LTE links while driving, 120 s to 140 s, in mahimahi's format",
        licence="GPL-3.0-or-later",
        source="https://github.com/ravinet/mahimahi",
        citation=(
            "K. Winstein, A. Sivaraman, H. Balakrishnan: Stochastic Forecasts Achieve High Throughput and "
            "Low Delay over Cellular Networks. NSDI 2013"
        ),
        files=(
            _mahimahi(
                "ATT-LTE-driving-2016.down",
                271440,
                "24a40538340de991e0a6595aefc381b11a3da0446176e69b51750707a57b0344",
            ),
            _mahimahi(
                "ATT-LTE-driving-2016.up",
                113062,
                "ebb3d53674b77be4ed920ad91c4513a496e04e30da839e2ca8a627cb7269071e",
            ),
            _mahimahi(
                "TMobile-LTE-short.down",
                1211415,
                "4f33dce8dd811b5702272af64aaf64d3913719919abd776edf1e0f7c0965da43",
            ),
            _mahimahi(
                "TMobile-LTE-short.up",
                1005225,
                "1c0d1bf5417b07597724fd64afe676af3c1f337a4ccdde90106bf96b1bcf18b2",
            ),
            _mahimahi(
                "Verizon-LTE-short.down",
                365580,
                "c918436fbd6246af134c76585d9395881fdd27203c59a8902b9a7c675b8a8e3e",
            ),
            _mahimahi(
                "Verizon-LTE-short.up",
                434258,
                "f6cd9049f58d70f12545772a3482ded085b6d50f06a2f4ff4afcfb6fe7976dcc",
            ),
        ),
    ),
    DataSet(
        name="ucc-5g",
        title="5G download while driving in Ireland, one sample a second for 384 s, as CSV",
        licence="GPL-3.0",
        source="https://github.com/uccmisl/5Gdataset",
        citation=(
            "D. Raca, D. Leahy, C.J. Sreenan, J.J. Quinlan: Beyond Throughput, The Next Generation: a "
            "5G Dataset with Channel and Context Metrics. MMSys 2020"
        ),
        files=(
            DataFile(
                path="traces/ucc-5g-driving.csv",
                size=10022,
                sha256="f0180407172bd6f20af94de364a514d2cb7031d8b5344c403c4a9669cd2bd7be",
                url=_UCC + "5G-production-dataset.zip",
                download_sha256="abc729d696b5e0ba34a9c6ed35a851f2868d2b5071be5efb8a49691c23bb1a9b",
                extract=Columns(
                    member="5G-production-dataset/Download/Driving/B_2020.01.16_12.10.03.csv",
                    row="second",
                    columns={
                        "network_mode": "NetworkMode",
                        "rsrp_dbm": "RSRP",
                        "snr_db": "SNR",
                        "dl_bitrate_kbps": "DL_bitrate",
                        "ul_bitrate_kbps": "UL_bitrate",
                    },
                ),
            ),
        ),
    ),
    DataSet(
        name="5gophers",
        title="Throughput of three US 5G carriers on one drive, one sample a second, as CSV",
        licence="CC-BY-4.0",
        source="https://fivegophers.umn.edu/www20",
        citation=(
            "A. Narayanan, E. Ramadan, J. Carpenter, Q. Liu, Y. Liu, F. Qian, Z.-L. Zhang: A First Look at "
            "Commercial 5G Performance on Smartphones. WWW 2020"
        ),
        files=(DataFile("traces/5gophers-car-driving-1.csv", 0),),
        by_hand=(
            "Download 5Gophers 1.0 from the source. Save a driving trace as the file that is named above. "
            "Narrows reads the trace's columns seq_num (seconds) and TMobile_throughput_mbps (Mbit/s)."
        ),
    ),
)
