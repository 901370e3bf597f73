"""A release's certificate: what was computed from what, and that an audit found nothing.

A certificate is public, so nothing in it may let a guess be checked. What is public already is hashed
plainly; what isn't (facts, hidden values, definitions with their decisions) is hashed with a secret that
stays in the office's database: whoever has that can check the certificate, nobody else can use it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.errors import UserError

FORMAT = "celosia-certificate-1"
#: Steps that the smallest slack is told in: finer, it would say something about a cell.
_SLACKS = ((0.1, "at least 10 %"), (0.01, "at least 1 %"), (0.0, "less than 1 %"))


def canonical(document: Mapping[str, Any]) -> bytes:
    """The one way to write a certificate: sorted keys, no spaces, ASCII."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def signed_part(document: Mapping[str, Any]) -> bytes:
    """What the signature is over: everything but itself."""
    return canonical({name: value for name, value in document.items() if name != "signature"})


def fingerprint(text: str) -> str:
    """How the next certificate names this one."""
    return hashlib.sha256(text.encode()).hexdigest()


def read_certificate(text: str) -> dict[str, Any]:
    """A certificate's document.

    Raises
    ------
    UserError
        If the text is none, or written in another way than canonically.
    """
    try:
        document = json.loads(text)
    except ValueError:
        raise UserError("This is no certificate: it isn't JSON.") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UserError(f"This is no certificate of format {FORMAT}.")
    if canonical(document).decode() != text.strip():
        raise UserError("The certificate isn't written canonically: it was changed, or copied by a program.")
    return document


def commitment(salt: bytes, *parts: bytes | str | NDArray[Any]) -> str:
    """HMAC-SHA-256 of the parts, each behind its length; says nothing to whoever lacks the salt."""
    mac = hmac.new(salt, digestmod=hashlib.sha256)
    for part in parts:
        body = part.encode() if isinstance(part, str) else part
        if isinstance(body, np.ndarray):
            plain = np.ascontiguousarray(body, dtype=body.dtype.newbyteorder("<"))
            body = f"{plain.dtype.str}{plain.shape}".encode() + plain.tobytes()
        mac.update(f"{len(body)}:".encode())
        mac.update(body)
    return mac.hexdigest()


def public_digest(keys: Iterable[str], status: NDArray[np.int8], values: NDArray[np.float64]) -> str:
    """SHA-256 over all that readers see: key, status and shown value of each cell, a line each."""
    digest = hashlib.sha256()
    for key, state, value in zip(keys, status.tolist(), values.tolist(), strict=True):
        shown = "" if math.isnan(value) else repr(value)
        digest.update(f"{key}\t{state}\t{shown}\n".encode())
    return digest.hexdigest()


def slack_in_words(relative: float) -> str:
    """The smallest slack of a protected cell, as a share of its level, in coarse steps."""
    if math.isinf(relative):
        return "nothing to protect"
    return next((words for least, words in _SLACKS if relative >= least), "exposed")
