"""What is in a log: `Summary` counts events in one pass; `text`, `html` and `as_json` tell it.

All of this is pure; nothing here reads files.
"""

from __future__ import annotations

from binlane.binlogs.cat.summary.collect import Summary

__all__ = ["Summary"]
