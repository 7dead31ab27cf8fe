"""One filter for all readers of a log: it lets changes through by the tables that they concern."""
