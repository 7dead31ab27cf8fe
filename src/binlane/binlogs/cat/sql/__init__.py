"""Row changes as SQL statements: forward, and backward as a flashback."""
