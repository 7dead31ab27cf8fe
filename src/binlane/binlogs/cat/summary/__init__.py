"""The contents of a log: `Summary` counts events in one pass; `text`, `html` and `as_json` show it.

All of this is pure; nothing here reads files.
"""

from __future__ import annotations

from binlane.binlogs.cat.summary.collect import Summary

__all__ = ["Summary"]
