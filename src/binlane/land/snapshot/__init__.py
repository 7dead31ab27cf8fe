"""The rows that tables held before the log that is landed, read from the server without locks.

- `cells`: what a server sends for a column → an Arrow array of the type that the log's rows have.
- `table`: a table's definition → which columns are asked for and how, its key, what stands against it.
- `places`: where in its log a server is, so that what precedes it is visible to who reads then.
- `chunks`: ranges of a key: their bounds, and the conditions that select them.

Why it is exact stands in docs/decisions/0032-snapshot.md.
"""
