"""The listening port: every client session is relayed to the source over a connection of its own.

- `login`: the handshake, relayed; `authentication`: what follows until the source decides (pure).
- `machine`: bytes of both sides in, bytes and questions out (pure). It is `command_reader`, the one reader of
  a client's commands, over `judged_commands`, what becomes of a judge's verdict, and the login.
- `phase`: the phases of a session, and the table of the ways between them; `questions`: what it asks (pure).
- `client_frames`: what a client sends, frame by frame; `command_rules`: which of its commands are read (pure).
- `reply_follower`: where replies of the source end, and which are read; `ok_packets`: the short ones (pure).
- `own_replies`: replies of binlane's own; `user_change`: COM_CHANGE_USER where it is read (pure).
- `judge`: what is asked of whoever judges a session's statements; `answers`: what binlane answers.
- `faults`: faults of binlane's own, which no session ends by.
- `client_statements`, `prepared`, `value_texts`: the statements in a client's packets (pure).
- `replica_statements`: what replicas and binlog tools ask about the log (pure).
- `privileges`: what SHOW GRANTS says (pure).
- `log_texts`: what peers say, as it is logged.
- `socket_accounts`: who must not log in over a source's Unix socket.
- `handler`: what the gateway asks of whoever knows the binlogs.
- `tls`: TLS between a wire's bytes and those that are meant.
- `long_texts`: the thread in which long texts are read.
- `statement_answers`: what a session answers to statements about binlogs.
- `side`: one of a session's two connections; `session`: one at work; `transport`: the port.

The handshake is relayed: the source alone decides who gets in. No password is kept or told; one that
a client sends in clear inside of TLS passes, as it does at the source.
Binlogs, their statements and their dumps live elsewhere.
"""
