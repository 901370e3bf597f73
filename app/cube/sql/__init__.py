"""Cubes whose facts stay in the office's own database or cluster, which aggregates them."""
