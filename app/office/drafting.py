"""Work on drafts: files put, moved and taken out, drafts published; each with its entry in the journal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from app.domain.errors import UserError
from app.domain.people import Actor, Permission
from app.domain.toml import read_toml
from app.domain.version import Files, Upload, Version
from app.office.journal import Journal
from app.office.named_files import facts_place
from app.office.versions import Versions, diff_files

#: Files of cubes, as `load_publication` reads them: one in a folder of its own isn't read.
_CUBE = re.compile(r"cubes/[^/]+\.toml")


class Drafting:
    """What analysts do with drafts. Made by `app.bootstrap`."""

    def __init__(self, versions: Versions, journal: Journal) -> None:
        self._versions = versions
        self._journal = journal

    def begin(self, actor: Actor, origin: str = "") -> Version:
        """A draft that begins as the current version."""
        with self._journal.together():
            draft = self._versions.begin(actor.name)
            self._journal.record(
                actor, "draft.begin", f"draft {draft.id}", None, {"from": draft.parent}, origin
            )
        return draft

    def draft(self, identity: int) -> Version:
        """A draft by its number.

        Raises
        ------
        UserError
            If there never was one; ConflictError if it is none any more.
        """
        return self._versions.draft(identity)

    def files(self, draft: Version) -> Files:
        """What a draft holds."""
        return self._versions.files(draft)

    def put_texts(self, actor: Actor, draft: Version, texts: Mapping[str, str], origin: str = "") -> Version:
        """Put texts into a draft, in place of what was there at their paths."""
        files = self.files(draft)
        return self._edit(actor, draft, Files({**files.texts, **texts}, files.uploads), origin)

    def put_upload(
        self,
        actor: Actor,
        draft: Version,
        path: str,
        upload: Upload,
        texts: Mapping[str, str],
        origin: str = "",
    ) -> Version:
        """Put facts into a draft, with texts that go along with them: the cube that is to be of these facts.

        Raises
        ------
        UserError
            If other facts are at ``path``, which another cube may name.
        """
        files = self.files(draft)
        cube = next((text for text in texts if text.startswith("cubes/")), "")
        if facts_place(files, path, cube) != path:
            raise UserError(f"There is something at {path} already.")
        uploads = {**files.uploads, path: upload.digest}
        return self._edit(actor, draft, Files({**files.texts, **texts}, uploads), origin)

    def replace(self, actor: Actor, draft: Version, files: Files, origin: str = "") -> Version:
        """Put other files in place of everything."""
        return self._edit(actor, draft, files, origin)

    def move(self, actor: Actor, draft: Version, path: str, to: str, origin: str = "") -> Version:
        """Give a file, or a folder with all in it, another path.

        Raises
        ------
        UserError
            If there is nothing at ``path``, or something at ``to``.
        """
        files = self.files(draft)
        moved = {old: _moved(old, path, to) for old in (*files.texts, *files.uploads)}
        if all(old == new for old, new in moved.items()):
            raise UserError(f"There is nothing at {path}.")
        if len(set(moved.values())) < len(moved):
            raise UserError(f"There is something at {to} already.")
        whole = Files(
            {moved[old]: text for old, text in files.texts.items()},
            {moved[old]: digest for old, digest in files.uploads.items()},
        )
        return self._edit(actor, draft, whole, origin)

    def delete(self, actor: Actor, draft: Version, path: str, origin: str = "") -> Version:
        """Take a file, or a folder with all in it, out of a draft.

        Raises
        ------
        UserError
            If there is nothing at ``path``.
        """
        files = self.files(draft)

        def stays(name: str) -> bool:
            return name != path and not name.startswith(f"{path}/")

        texts = {name: text for name, text in files.texts.items() if stays(name)}
        uploads = {name: digest for name, digest in files.uploads.items() if stays(name)}
        if len(texts) + len(uploads) == len(files.texts) + len(files.uploads):
            raise UserError(f"There is nothing at {path}.")
        return self._edit(actor, draft, Files(texts, uploads), origin)

    def update(self, actor: Actor, draft: Version, origin: str = "") -> Version:
        """Bring a draft up to the current version."""
        with self._journal.together():
            updated = self._versions.update(draft)
            self._journal.record(
                actor,
                "draft.update",
                f"draft {draft.id}",
                {"from": draft.parent},
                {"from": updated.parent},
                origin,
            )
        return updated

    def discard(self, actor: Actor, draft: Version, origin: str = "") -> None:
        """Throw a draft away."""
        with self._journal.together():
            self._versions.discard(draft)
            self._journal.record(actor, "draft.discard", f"draft {draft.id}", origin=origin)
        self.tidy(actor, origin)

    def tidy(self, actor: Actor, origin: str = "") -> None:
        """Forget facts that were uploaded a while ago and are in no version and no draft."""
        with self._journal.together():
            for upload in self._versions.forget_unused():
                facts = {"sha256": upload.digest, "bytes": upload.size}
                self._journal.record(actor, "facts.forget", upload.name, facts, None, origin)

    def publish(self, actor: Actor, draft: Version, message: str, origin: str = "") -> Version:
        """Make a draft the current version.

        Raises
        ------
        UserError
            If it says nothing new, or changes confidentiality rules and the actor may not.
        """
        parent = None if draft.parent is None else self._versions.version(draft.parent)
        before = Files({}) if parent is None else self.files(parent)
        after = self.files(draft)
        require_rules_permission(actor, before, after)
        changed = [change.path for change in diff_files(before, after)]
        if not changed:
            raise UserError("This draft changes nothing.")
        if not message.strip():
            raise UserError("Say in a few words what this version changes.")
        with self._journal.together():
            published = self._versions.publish(draft, message.strip()[:1000])
            self._journal.record(
                actor,
                "version.publish",
                f"version {published.id}",
                {"version": draft.parent},
                {"version": published.id, "message": published.message, "files": changed[:100]},
                origin,
            )
        return published

    def _edit(self, actor: Actor, draft: Version, files: Files, origin: str) -> Version:
        changed = [f"{change.kind} {change.path}" for change in diff_files(self.files(draft), files)]
        if not changed:
            return draft
        with self._journal.together():
            edited = self._versions.edit(draft, files)
            self._journal.record(
                actor, "draft.edit", f"draft {draft.id}", None, {"files": changed[:100]}, origin
            )
        return edited


def require_rules_permission(actor: Actor, before: Files, after: Files) -> None:
    """Only who sets rules may change them, also by way of the text that they are written in.

    The first version of all brings its rules along.

    Raises
    ------
    UserError
    """
    if actor.may(Permission.SET_RULES) or "publication.toml" not in before.texts:
        return
    if said := change_of_rules(before, after):
        raise UserError(said)


def change_of_rules(before: Files, after: Files) -> str:
    """What files say otherwise about confidentiality than those before; nothing where they don't.

    Who counts as a contributor is a rule as well: with another column every threshold means something else.
    So is what of earlier releases needn't be known any more, or is known under another name: the difference
    of two releases is protected by what they showed of the same cells.
    """
    if _rules_of(before) != _rules_of(after):
        return "This changes confidentiality rules in publication.toml, which is for an admin to do."
    then, now = _formerly(before), _formerly(after)
    for cube, said in now.items():
        # What earlier releases showed counts as shown of what is declared to be the same.
        if said != then.get(cube, []):
            return f"This changes formerly or recoded in cube {cube}, which is for an admin to do."
    counted = _counted(after)
    for (cube, measure), told in _counted(before).items():
        # What is taken out could come back as something else.
        if counted.get((cube, measure)) != told:
            if measure:
                return (
                    f"This changes nonnegative or of_which of measure {measure} in cube {cube}, "
                    "which is for an admin to do."
                )
            return (
                f"This changes who counts as a contributor in cube {cube} (respondent, holding, weight or "
                "request), which is for an admin to do."
            )
    return ""


def _rules_of(files: Files) -> str:
    text = files.texts.get("publication.toml", "")
    document = _document(text)
    # As text, in which nan equals itself and 3 differs from 3.0 and from true.
    if document is None:
        return text
    release = document.get("release")
    forgotten = release.get("forget") if isinstance(release, dict) else None
    return repr([document.get("confidentiality"), forgotten])


def _cubes(files: Files) -> Iterator[tuple[str, dict[str, object]]]:
    """The cubes that a run reads, by name; several of one name too, of which only one is meant to be left."""
    for path, text in sorted(files.texts.items()):
        document = _document(text) if _CUBE.fullmatch(path) else None
        if document is not None:
            yield str(document.get("name")), document


def _counted(files: Files) -> dict[tuple[str, str], list[str]]:
    """What is said of contributors by cube, and of what readers know by cube and measure: each time."""
    found: dict[tuple[str, str], list[str]] = {}
    for cube, document in _cubes(files):
        facts, measures = document.get("facts"), document.get("measure")
        facts = facts if isinstance(facts, dict) else {}
        told = [facts.get(key) for key in ("respondent", "holding", "weight", "request")]
        found.setdefault((cube, ""), []).append(repr(told))
        for item in measures if isinstance(measures, list) else ():
            if isinstance(item, dict):
                told = [item.get("nonnegative", True), item.get("of_which")]
                found.setdefault((cube, str(item.get("name"))), []).append(repr(told))
    return found


def _formerly(files: Files) -> dict[str, list[str]]:
    """What of each cube is declared to be something of before."""
    found: dict[str, list[str]] = {}
    for cube, document in _cubes(files):
        found.setdefault(cube, []).extend(sorted(_renamings(document)))
    return found


def _renamings(table: object) -> Iterator[str]:
    if isinstance(table, list):
        for item in table:
            yield from _renamings(item)
    elif isinstance(table, dict):
        for key, value in table.items():
            if key in ("formerly", "recoded"):
                yield repr((table.get("name"), key, value))
            else:
                yield from _renamings(value)


def _document(text: str) -> dict[str, object] | None:
    try:
        return read_toml(text)
    except (ValueError, RecursionError):
        return None


def _moved(name: str, path: str, to: str) -> str:
    if name == path:
        return to
    return f"{to}{name[len(path) :]}" if name.startswith(f"{path}/") else name
