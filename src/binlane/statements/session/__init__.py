"""One session of a server without a server: variables, transactions, caches, temporary tables."""
