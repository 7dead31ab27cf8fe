"""A server's binlog, read as a replica reads it.

- `settings`: which server, how to log in, from where on.
- `authentication`, `dialogue`, `source_facts`: logging in and finding out whom we speak to.
- `packet_flow`, `packet_events`: frames and a conversation; packets of a dump → events with positions.
- `event_stream`: these events → event groups.
- `machine`: all of these as one state machine: bytes in, bytes and event groups out.
- `transport`: the sockets, clocks and files of a capture.
- `remote_machine`, `remote`: a server's files for `cat`, by a machine and a blocking socket.
"""
