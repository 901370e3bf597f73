"""The office's side of the site, under `/studio`."""
