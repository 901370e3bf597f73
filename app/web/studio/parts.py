"""The parts that the studio is made of: each brings its routes."""

from __future__ import annotations

from app.web.studio import home, journal, people, signin

PARTS = (home.routes, signin.routes, people.routes, journal.routes)
