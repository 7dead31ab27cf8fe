"""The rows that tables held before the log that is landed, read from the server without locks.

- `table`, `cells`: a table's definition → what is asked for; what a server sends for a column → an
  Arrow array of the type that the log's rows have. Definitions, ranges of keys, and places of which
  all that precedes is visible, are those of `client.rows`.
- `same_server`: whether the server is the one whose log is landed.
- `chunk_work`: a task's part: a range of a table → files. `snapshot_reader`: the driver's: which,
  when, again.
- `snapshot_records`: what is remembered. `splicing`: the rows become a table's at their place in
  the log.

Why it is exact stands in docs/decisions/0032-snapshot.md.
"""
