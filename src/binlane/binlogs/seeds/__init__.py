"""The rows of tables exactly as of one GTID, as event groups that a binlog can begin with.

- `spool`: a folder with the rows as they were read, range by range, and with what was done.
- `spool_reading`: a server's tables → spool; goes on behind the last range that is done.
- `reconciliation`: spool and the log's changes meanwhile → the rows at the last of these changes.
- `seed_groups`: rows → transactions of bounded size, and event groups with the GTIDs given.

Why it is exact stands in docs/decisions/0076-rows-as-seeds.md.
"""
