"""Answers that the port gives itself: about binlogs, accounts, grants, system tables, EXPLAIN BINLOG."""
