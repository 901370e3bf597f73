"""release: what the public may know, frozen; no number of a hidden cell goes in."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from app.domain.catalogue import Catalogue
from app.domain.crawled import Crawl
from app.domain.errors import InternalError
from app.domain.masked import CellStatus, FloatArray
from app.domain.numbers import rounded
from app.domain.places import Places
from app.domain.publication import Publication
from app.domain.release import Release
from app.domain.release_life import ReleaseState
from app.pipeline.audit import ReleaseAudit
from app.pipeline.suppress import Suppression


def make_release(
    publication: Publication, crawl: Crawl, suppression: Suppression, audit: ReleaseAudit
) -> tuple[Release, Catalogue]:
    """The release and its catalogue.

    Raises
    ------
    InternalError
        If the audit isn't clean and complete.
    """
    if not audit.ok:
        what = f"{len(audit.breaches)} cells are exposed" if audit.complete else "the audit is incomplete"
        raise InternalError(f"nothing can be released: {what}")
    keys: list[str] = []
    status, values = [], []
    for cells, hidden in zip(crawl.cubes, suppression.hidden, strict=True):
        n = cells.n_published
        keys.extend(cells.keys(np.arange(n)))
        state = np.full(n, CellStatus.SHOWN, dtype=np.int8)
        state[np.isnan(cells.values[:n])] = CellStatus.EMPTY
        state[hidden[:n]] = CellStatus.CONFIDENTIAL
        status.append(state)
        values.append(
            np.where(state == CellStatus.SHOWN, at_published_digits(cells.values[:n], cells.decimals), np.nan)
        )
    # The id says nothing about the data: a hash of them would let a guess be checked.
    identity = secrets.token_hex(8)
    created = datetime.now(UTC)
    release = Release(
        id=identity,
        state=ReleaseState.AUDITED,
        created=created,
        fingerprints=crawl.fingerprints,
        keys=tuple(keys),
        status=np.concatenate(status),
        values=np.concatenate(values),
    )
    return release, catalogue_of(publication, crawl, release, places_of(crawl))


def catalogue_of(
    publication: Publication, crawl: Crawl, release: Release, places: Mapping[str, Places]
) -> Catalogue:
    """What readers know of a release besides its cells, which stand at ``places``."""
    used = {cells.cube.name for cells in crawl.cubes}
    return Catalogue(
        release_id=release.id,
        released=release.created,
        title=publication.title,
        description=publication.description,
        publisher=publication.publisher,
        languages=publication.languages,
        root=publication.root,
        choices=crawl.choices,
        cube_of=crawl.cube_of,
        cubes={cells.cube.name: cells.cube for cells in crawl.cubes},
        protection=tuple(item for item in publication.confidentiality.measures if item.cube in used),
        hide_zeros=publication.confidentiality.hide_zeros,
        insiders=publication.confidentiality.insiders,
        calculated={cube.name: cube.calculated for cube in publication.cubes if cube.name in used},
        named_sets={cube.name: cube.named_sets for cube in publication.cubes if cube.name in used},
        places=places,
        shapes=publication.shapes,
        theme=publication.theme,
        contact=publication.contact,
        next_release=publication.next_release,
    )


def places_of(crawl: Crawl) -> dict[str, Places]:
    """Where the cells of each cube stand, by their rows in the release."""
    found: dict[str, Places] = {}
    start = 0
    for cells in crawl.cubes:
        here = cells.places
        found[cells.cube.name] = replace(here, row=here.row + start, key_row=here.key_row + start)
        start += cells.n_published
    return found


def at_published_digits(values: FloatArray, decimals: NDArray[np.int8]) -> FloatArray:
    """Values at their published digits."""
    result = values.copy()
    for digits in np.unique(decimals):
        mine = decimals == digits
        result[mine] = rounded(values[mine], int(digits))
    return result
