"""Several processes that serve the port: each with the sessions of its clients, and one that routes.

A worker has what a client's session needs: the gateway, the judges, the source's objects. All that
is there once stays with the process that started them: the store, the routing loop, dumps, who may
see what, and the journal. Between them go a link of calls, and what sessions say of their
statements (`port.attribution_messages`).
"""
