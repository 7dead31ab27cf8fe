"""Filters of the printed events of a log: by place, time, GTID and server, and by table."""
