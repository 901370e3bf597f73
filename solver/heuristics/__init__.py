"""Heuristics: one method per file, each on one reduced component, each leaving it safe."""
