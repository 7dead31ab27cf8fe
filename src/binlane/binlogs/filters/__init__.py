"""Which of a log's changes a reader wants, by the tables that they concern: one filter for all readers."""
