"""The rows that tables held before the log that is landed, read from the server without locks.

- `table`, `cells`, `keys`: a table's definition → what is asked for, in which ranges of its key;
  what a server sends for a column → an Arrow array of the type that the log's rows have.
- `places`, `same_server`: where in its log a server is, so that what precedes it is visible to who
  reads then; whether it is the server whose log is landed.
- `work`: a task's part: a range of a table → files. `reading`: the driver's: which, when, again.
- `record`: what is remembered. `splicing`: the rows become a table's at their place in the log.

Why it is exact stands in docs/decisions/0032-snapshot.md.
"""
