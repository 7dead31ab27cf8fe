"""The rows of a server's tables, read without locks, as the images that its log would have.

- `settled_places`: a place in the server's log of which all that precedes is visible to who reads.
- `source_table`: a table's definition → which columns, by which key; no server, no Arrow.
- `key_bounds`: ranges of a key as conditions.
- `logged_table`: a table as its log's TABLE_MAP describes it, and what is selected of it.
- `table_rows`: ranges of a table → row images with their keys.
- `waiting_statements`: who waits for a table that is read for long.

The lander's snapshot and the seeds of a binlog stand on these. Why reading range by range is exact
stands in docs/decisions/0032-snapshot.md and 0076-rows-as-seeds.md.
"""
