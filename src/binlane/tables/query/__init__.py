"""SQL over logs: their tables for DuckDB, which asks for columns and rows that a query needs."""
