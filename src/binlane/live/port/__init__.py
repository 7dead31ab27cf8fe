"""What a client's session through the port does to each binlog, before it runs and after."""
