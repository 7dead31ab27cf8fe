"""The client side of the servers' protocol: logging in, asking, taking a log's events.

- `settings`: a server's address. `account`: who logs in there.
- `authentication`, `dialogue`: logging in and asking, as conversations without a socket.
- `packet_flow`, `packet_events`: frames and a conversation; packets of a dump → events with positions.
- `remote_machine`, `remote`: the files of a server's log, by a machine and a blocking socket.
- `connection`: that socket.
- `session`, `text_rows`: a session that asks one thing after the other; rows too many to hold.
- `schema`: the definitions of all objects of a server.
- `questions`, `known_objects`: those that statements need, one by one; what is known, until DDL.
- `source_objects`: a client's session on the source, and what its account may see of them.

What is done with a log, and when to try again, is for those who use it.
"""
