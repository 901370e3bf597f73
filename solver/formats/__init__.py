"""Readers and writers of files that statisticians have; one format, one module."""
