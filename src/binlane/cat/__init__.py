"""Prints binlogs for people and programs: text as mariadb-binlog writes it, or JSON lines.

Renderers take events and give lines; opening files and writing to the terminal is the command's.
"""
