"""The live system: what takes a server's log, serves its clients and replicas, and shows how it does."""
