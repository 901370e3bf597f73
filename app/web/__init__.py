"""The public site: server-rendered pages, downloads and the API, all from masked cells."""
