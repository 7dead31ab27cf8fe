"""A server's binlog, read as a replica reads it.

- `settings`: which server, as whom, from where on.
- `source_facts`: whether its log can be the ground truth.
- `event_stream`: a dump's events → event groups.
- `machine`: all of these as one state machine: bytes in, bytes and event groups out.
- `backoff`, `transport`: the sockets, clocks and files of a capture.

How a server is spoken to is `client`'s.
"""
