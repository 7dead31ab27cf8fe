"""Binlog files on disk: write, index, rotate, recover, purge, read, verify; definitions in SQLite.

One process owns a data directory and writes; any number of others read. What goes into a binlog
is decided above (`routing`), how one event looks below (`codec`); no network lives here.
"""
