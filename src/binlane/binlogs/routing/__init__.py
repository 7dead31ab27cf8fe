"""One event group in, one event group per binlog out. Pure."""
