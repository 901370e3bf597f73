"""OpenID Connect as an option: which provider vouches for the office's people."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class SingleSignOn:
    """The provider and what it knows this office as.

    Attributes
    ----------
    issuer : str
        Its address; its own document there says the rest.
    client_id, client_secret : str
    claim : str
        The claim that names the account: ``email`` (which must be verified) or ``preferred_username``.
    """

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    claim: str = "email"
