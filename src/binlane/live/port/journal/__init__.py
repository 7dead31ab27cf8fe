"""The port's journal: what sessions said of their statements and which groups were found, for a restart."""
