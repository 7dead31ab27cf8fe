"""The listening port: every client session is relayed to the source over a connection of its own.

- `login`: the handshake, relayed (pure).
- `machine`: bytes of both sides in, bytes and questions out (pure).
- `reply_tracker`: where one reply of the source ends and the next begins (pure).
- `judge`: what is asked of whoever judges a session's statements; `answers`: what binlane answers.
- `client_statements`, `prepared`, `value_texts`: the statements in a client's packets (pure).
- `followed_replies`: what the source answers to a session that is judged (pure).
- `replica_statements`: what replicas and binlog tools ask about the log (pure).
- `privileges`: what SHOW GRANTS says (pure).
- `log_texts`: what peers say, as it is logged.
- `handler`: what the gateway asks of whoever knows the binlogs.
- `side`: one of a session's two connections; `session`: one at work; `transport`: the port.

The handshake is relayed: no password is ever seen here, and the source alone decides who gets in.
Binlogs, their statements and their dumps live elsewhere.
"""
