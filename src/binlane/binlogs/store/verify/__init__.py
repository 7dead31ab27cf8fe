"""Everything that can be wrong with binlog files and a store, as a list; the core of `verify`.

Reads only, needs no lock. A store's live file is looked at up to its last whole event group. That
an event group is missing cannot be told in a scoped binlog; that events are missing can, since
each says where it ends. Against the full log (`against`) both can.

`checks` holds what is checked of events and groups. Two paths lead there: `reference` decodes
every event, and `kernel_path` lets a kernel look and decodes what is rare. Both find the same.
"""

from __future__ import annotations

from binlane.binlogs.store.verify.arguments import verify, verify_against
from binlane.binlogs.store.verify.faults import CheckCounts, Fault

__all__ = ["CheckCounts", "Fault", "verify", "verify_against"]
