"""The tables `system.…`, which show definitions and what becomes of them, asked in SQL.

- `schema`: which tables there are, their columns, and the statements that describe them (pure).
- `question`: which statements ask them, and which mix them with the source's tables (pure).
- `translate`: SQL of the servers to that of SQLite (pure).
- `worker`: the process that answers one question; `run` starts it and waits; `turns` says whose
  is next.

SQLite does the work, in a process that may take so much time and memory and then is killed: any
query may be asked, also one that never ends. The process has a copy, so nothing can be changed.
"""
