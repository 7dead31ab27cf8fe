"""HTTP for operators: /healthz, /metrics and /api/binlogs. Reads what `service` shows it."""
