"""Prints binlogs for people and programs: text as the servers' own tools write it, JSON, SQL, summaries.

`files` opens what is read, `force` passes damage over, `selection` and `table_filter` choose events,
renderers take events and give lines. Writing to the terminal is the command's.
"""
