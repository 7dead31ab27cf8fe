"""Binlog files on disk: write, index, rotate, recover, purge, read, verify; definitions in SQLite.

One process owns a data directory and writes; any number of others read. The contents of a binlog
are decided above (`routing`), the form of one event below (`codec`); no network lives here.
"""
