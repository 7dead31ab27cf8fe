"""A log's changes → tables: what tasks write, what a landing commits, and how tables are kept."""
