"""Packets of the MySQL client/server protocol ⇄ bytes.

- `framing`: payloads ⇄ the byte stream, and length-encoded strings.
- `flags`: commands, capabilities, server status.
- `handshake`: greeting, login, change of authentication plugin.
- `replies`: OK, ERR, EOF.
- `results`: text result sets.
- `commands`: COM_QUERY, COM_REGISTER_SLAVE, COM_BINLOG_DUMP.
- `execution`: COM_STMT_EXECUTE with its values.
- `session_state`: what the session tracker says.

Pure: who speaks and when is the business of the machines above. What capabilities a connection has
agreed on changes the layout of some packets, so their coders take it as an argument. Bytes that are
no such packet raise `CodecError`.
"""
