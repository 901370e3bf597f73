"""The parts that the studio is made of: each brings its routes."""

from __future__ import annotations

from app.web.studio import (
    data,
    drafts,
    editor,
    home,
    jobs,
    journal,
    people,
    preview,
    protection,
    publication,
    releases,
    rules,
    signin,
    what_if,
)

PARTS = (
    home.routes,
    signin.routes,
    publication.routes,
    drafts.routes,
    data.routes,
    editor.routes,
    preview.routes,
    people.routes,
    jobs.routes,
    releases.routes,
    rules.routes,
    protection.routes,
    what_if.routes,
    journal.routes,
)
