"""Celosia: publish an OLAP cube on the web and prove that nothing shown gives a respondent away."""

__version__ = "0.1.0"
