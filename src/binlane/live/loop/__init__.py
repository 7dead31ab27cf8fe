"""The routing thread: it takes the source's groups, gives each binlog its part, and carries out what changes binlogs."""
