"""The client side of the servers' protocol: logging in, asking, taking a log's events.

- `settings`: a server's address. `account`: who logs in there.
- `authentication`, `dialogue`: logging in and asking, as conversations without a socket.
- `packet_flow`, `packet_events`: frames and a conversation; packets of a dump → events with positions.
- `remote_machine`, `remote`: the files of a server's log, by a machine and a blocking socket.
- `connection`: that socket.
- `session`, `text_rows`: a session that asks one thing after the other; rows too many to hold.
- `schema`, `source_objects`: the definitions of a server's tables: all, or those a statement needs.

What is done with a log, and when to try again, is for those who use it.
"""
