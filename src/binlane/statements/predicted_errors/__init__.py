"""Errors that a server would give to a statement, predicted for `check` and EXPLAIN BINLOG.

A session takes them by `policy.server_errors.ServerErrors`. The port uses none of this: its source gives its own errors.
"""
