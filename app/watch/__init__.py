"""What operators see of a running process: log lines, metrics, traces. Never a value of a cell."""
