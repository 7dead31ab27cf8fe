"""A server's binlog, read as a replica reads it.

- `settings`: which server, how to log in, from where on.
- `authentication`, `dialogue`, `source_facts`: logging in and finding out whom we speak to.
- `event_stream`: packets of a dump → events with positions → event groups.
- `machine`: all of these as one state machine: bytes in, bytes and event groups out.
- `transport`: the only module that touches sockets, clocks and files.
"""
