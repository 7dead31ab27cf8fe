"""A server's binlog, read as a replica reads it.

- `settings`: which server, as whom, from where on.
- `source_facts`: what a source says of itself, and whether its log can be the ground truth.
- `identity`: whether it still is the source whose log was taken before.
- `asking`: logging in, the checks and the request for the log, as a conversation without a socket.
- `raw_stream`: what comes then → runs of event groups as bytes, by kernels.
- `event_stream`: the same event by event: the reference, and the way without kernels.
- `order`: GTIDs that come as they should.
- `spill`: files for transactions that are too large to be held.
- `capture`: one connection to a source, polled.
- `backoff`: how long to wait before the next attempt.

How a server is spoken to is `client`'s.
"""
