"""The key that certificates are signed with: Ed25519, from the environment or a file for its owner only."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from app.domain.errors import OperatorError, UserError

#: Holds the private key as 32 bytes in base64.
KEY_VARIABLE = "CELOSIA_SIGNING_KEY"
FILE = "signing-key"


@dataclass(frozen=True)
class Signer:
    """A private key; ``public`` is its public half in base64."""

    _key: Ed25519PrivateKey

    @property
    def public(self) -> str:
        raw = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return base64.b64encode(raw).decode()

    def sign(self, body: bytes) -> str:
        """The signature in base64."""
        return base64.b64encode(self._key.sign(body)).decode()


def key_name(public: str) -> str:
    """A short name of a public key, to compare by eye."""
    digest = hashlib.sha256(_decoded(public, "public key")).hexdigest()[:32]
    return ":".join(digest[place : place + 4] for place in range(0, len(digest), 4))


def is_signed(body: bytes, signature: str, public: str) -> bool:
    """Whether the owner of a public key signed the bytes."""
    try:
        key = Ed25519PublicKey.from_public_bytes(_decoded(public, "public key"))
        key.verify(_decoded(signature, "signature"), body)
    except (InvalidSignature, ValueError):
        return False
    return True


def signer_of(state: Path) -> Signer:
    """The signer of the environment, or of the key file in a publication's state folder, made if absent.

    Raises
    ------
    UserError
        If the key can't be understood, or others may read the file.
    OperatorError
        If the file can't be read or written.
    """
    given = os.environ.get(KEY_VARIABLE)
    if given:
        return _signer(given, f"variable {KEY_VARIABLE}")
    path = state / FILE
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _create(path)
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise UserError(f"{path} may be read by others. Make it yours alone: chmod 600 {path}")
        text = path.read_text(encoding="ascii")
    except OSError as error:
        raise OperatorError(f"The signing key {path} can't be had: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is no signing key.") from None
    return _signer(text, str(path))


def _create(path: Path) -> None:
    raw = Ed25519PrivateKey.generate().private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return  # Another process was quicker.
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(base64.b64encode(raw).decode() + "\n")


def _signer(text: str, where: str) -> Signer:
    try:
        return Signer(Ed25519PrivateKey.from_private_bytes(_decoded(text, where)))
    except ValueError:
        raise UserError(f"{where} is no signing key: that is 32 bytes in base64.") from None


def _decoded(text: str, where: str) -> bytes:
    try:
        return base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(where) from None
