"""The process's use of memory, processor and descriptors, as the system tells it."""

from __future__ import annotations

import os
import platform
import resource
import time
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from binlane.live.loop.port_settings import PortSettings
from binlane.live.web.status_values import ProcessStatus

_MEMORY: Final = Path("/proc/self/statm")
_DESCRIPTORS: Final = Path("/proc/self/fd")
_CONTROL_GROUP: Final = Path("/proc/self/cgroup")
_CONTROL_GROUPS: Final = Path("/sys/fs/cgroup")
_WORKERS_MOST: Final = 4
_UTIME: Final = 11
"""The field's number in /proc/PID/stat, counted from behind the name."""
_PAGE_BYTES: Final = resource.getpagesize()
_STARTED_AT_S: Final = time.time()


@cache
def _version() -> str:
    try:
        return version("binlane")
    except PackageNotFoundError:
        return "not installed"


def cpu_and_memory(process_id: int) -> tuple[float, int] | None:
    """Processor time in seconds and resident bytes of a child; None where the system tells neither."""
    place = Path("/proc") / str(process_id)
    try:
        fields = (
            (place / "stat")
            .read_text(encoding="ascii", errors="replace")
            .rpartition(")")[2]
            .split()
        )
        pages = (place / "statm").read_text(encoding="ascii").split()
        ticks = int(fields[_UTIME]) + int(fields[_UTIME + 1])
        return ticks / os.sysconf("SC_CLK_TCK"), int(pages[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return None


def worker_count(settings: PortSettings) -> int:
    """Processes that serve the port: a core is left to routing, the others serve it, four at most."""
    return min(_cores() - 1, _WORKERS_MOST) if settings.workers is None else settings.workers


def _cores() -> int:
    """Cores that the scheduler gives this process, and that the quotas of its control groups allow."""
    allowed = [len(os.sched_getaffinity(0))]
    with suppress(OSError, ValueError):
        group = _CONTROL_GROUP.read_text(encoding="utf-8").rpartition("0::/")[2].strip()
        for place in (_CONTROL_GROUPS / group, *(_CONTROL_GROUPS / group).parents):
            with suppress(OSError, ValueError):
                quota, period = (place / "cpu.max").read_text(encoding="ascii").split()
                allowed.append(max(1, int(quota) // int(period)))
    return min(allowed)


def process_status() -> ProcessStatus:
    """This process as it is now; what the system does not tell is None."""
    resident = virtual = descriptors = None
    with suppress(OSError, ValueError):
        pages = _MEMORY.read_text(encoding="ascii").split()
        virtual, resident = int(pages[0]) * _PAGE_BYTES, int(pages[1]) * _PAGE_BYTES
    with suppress(OSError):
        descriptors = sum(1 for _ in _DESCRIPTORS.iterdir()) - 1  # the one that lists them
    descriptors_max, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return ProcessStatus(
        version=_version(),
        python=platform.python_version(),
        process_id=os.getpid(),
        started_at_s=_STARTED_AT_S,
        cpu_s=time.process_time(),
        resident_bytes=resident,
        virtual_bytes=virtual,
        open_descriptors=descriptors,
        descriptors_max=None if descriptors_max == resource.RLIM_INFINITY else descriptors_max,
    )
