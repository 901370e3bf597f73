"""What a page says first after something was done; by a key, so that no address can put words on a page."""

from __future__ import annotations

from app.web.language import marked as _

NOTICES = {
    "saved": _("Saved."),
    "added": _("Added."),
    "removed": _("Removed."),
    "signed-out": _("You have signed out."),
    "password": _("The password was changed. Sign in with the new one."),
    "unlocked": _("The account is unlocked."),
    "published": _("Published: this is the current version now."),
    "updated": _("The draft is up to date with the current version."),
    "discarded": _("The draft was thrown away."),
    "imported": _("Imported into the draft."),
    "decided": _("Decided: it holds from the next run on."),
    "moved": _("Done."),
    "uploaded": _("Uploaded."),
    "queued": _("The job is in the queue."),
    "cancelled": _("The job is being cancelled."),
}
