"""What the port answers itself: statements about binlogs, accounts and grants, system tables, EXPLAIN BINLOG."""
