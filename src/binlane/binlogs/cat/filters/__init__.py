"""Which events of a log are printed: by place, time, GTID and server, and by table."""
