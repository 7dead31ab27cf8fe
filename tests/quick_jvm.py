"""Options of JVMs in tests, which end soon."""

from __future__ import annotations

from typing import Final

QUICK_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The best code would take longer to compile than it saves: half of a session's time."""
