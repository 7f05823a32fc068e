"""CPU and memory of processes as Linux's /proc tells them."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_LISTEN = "0A"  # TCP_LISTEN in /proc/net/tcp


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads of a process; 0.0 for one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def machine_cpu_seconds() -> float:
    """Busy time of all cores since boot."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    idle, io_wait = fields[3], fields[4]
    return (sum(fields) - idle - io_wait) / _TICKS_PER_S


def max_rss_mb(pid: int) -> int:
    """The most memory that a process ever had resident, in MiB; 0 for one that is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0)


def listeners(port: int) -> tuple[int, ...]:
    """The processes of this user that listen on a TCP port; none when the listener is elsewhere, e.g. in a container."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTEN and int(fields[1].rsplit(":", 1)[1], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(str(link.readlink()) in inodes for link in (process / "fd").iterdir()):
                found.append(int(process.name))
        except OSError:  # not ours to look into, or gone
            continue
    return tuple(found)
