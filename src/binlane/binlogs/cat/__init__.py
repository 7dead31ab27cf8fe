"""Prints binlogs for people and programs: text as the servers' own tools write it, JSON, SQL, summaries.

`files` opens what is read, `force` passes damage over, `filters` choose events, renderers (`text`,
`json_lines`, `sql`) take events and give lines; `fast_text` prints large logs as `text` does,
`summary` counts and `explain` shows one event. Writing to the terminal is the command's.
"""
