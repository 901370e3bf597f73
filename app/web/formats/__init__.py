"""Downloads: one module for each format, each from a `Download`, which holds masked cells only."""
