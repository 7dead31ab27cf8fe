"""HTTP for operators: the status page, /healthz, /metrics and /api. Reads what `service` shows it."""
