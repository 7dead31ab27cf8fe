"""Effects of a client's session through the port on each binlog, before a statement runs and after it."""
