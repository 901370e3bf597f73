"""The parts that the studio is made of: each brings its routes."""

from __future__ import annotations

from app.web.studio import home, jobs, journal, people, signin

PARTS = (home.routes, signin.routes, people.routes, jobs.routes, journal.routes)
