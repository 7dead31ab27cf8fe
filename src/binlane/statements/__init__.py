"""Statements: what they do, what a server would log of them, and what binlogs may hold."""
