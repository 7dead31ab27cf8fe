"""The version of binlane, for those who write it down."""

from __future__ import annotations

__version__ = "0.1.0"
