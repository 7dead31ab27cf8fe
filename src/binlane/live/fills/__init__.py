"""Gives binlogs their tables' rows: a process reads them, a thread has them placed (seed 030)."""
