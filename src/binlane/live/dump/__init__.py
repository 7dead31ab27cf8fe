"""Serves a binlog to replicas and binlog tools: what COM_BINLOG_DUMP is answered.

- `request`: what a replica asks for.
- `start`: where in which file its dump begins.
- `machine`: which packets it gets, in order (pure).
- `transport`: files in, packets out, waiting for more.

Whose login it is and which binlog it may read was decided above.
"""
