"""A cube on any server that speaks XML for Analysis 1.1."""
