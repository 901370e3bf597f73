"""Cube engines behind one port."""
