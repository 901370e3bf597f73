"""The office's use cases: people, journal, versions of the publication, and what others build on them."""
