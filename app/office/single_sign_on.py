"""OpenID Connect as an option: a provider vouches for the office's people (authorisation code with PKCE)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
from authlib.common.errors import AuthlibBaseError
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from app.domain.errors import OperatorError, UserError

_ALGORITHMS = ["RS256", "ES256", "PS256", "EdDSA"]
_SECONDS = 10.0
_REFUSED = UserError("The office's sign-in service didn't vouch for you. Begin again.")


@dataclass(frozen=True)
class Provider:
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

    def __post_init__(self) -> None:
        parts = urlsplit(self.issuer)
        loopback = parts.hostname in ("localhost", "127.0.0.1", "::1")
        if parts.scheme != "https" and not (parts.scheme == "http" and loopback):
            raise UserError("The address of the sign-in service must begin with https://.")
        if not self.client_id or self.claim not in ("email", "preferred_username"):
            raise UserError("Single sign-on needs a client id, and email or preferred_username as its claim.")


def provider_of(environment: Mapping[str, str]) -> Provider | None:
    """The provider that environment variables name; None when they name none.

    Raises
    ------
    UserError
        If they name it wrongly.
    """
    issuer = environment.get("CELOSIA_OIDC_ISSUER", "")
    if not issuer:
        return None
    return Provider(
        issuer,
        environment.get("CELOSIA_OIDC_CLIENT_ID", ""),
        environment.get("CELOSIA_OIDC_CLIENT_SECRET", ""),
        environment.get("CELOSIA_OIDC_CLAIM", "email"),
    )


@dataclass(frozen=True)
class Vouched:
    """Whom the provider vouches for."""

    issuer: str
    subject: str
    name: str


class SingleSignOn:
    """Sends people to a provider and reads what it says of them."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._lock = Lock()
        self._about: Mapping[str, Any] | None = None

    def begin(self, back: str) -> tuple[str, str]:
        """Where to send somebody, and what to remember of it until they are back at ``back``.

        Raises
        ------
        OperatorError
            If the provider can't be reached.
        """
        nonce, verifier = secrets.token_urlsafe(24), secrets.token_urlsafe(48)
        with self._client(back) as client:
            url, state = client.create_authorization_url(
                self._ask("authorization_endpoint"), nonce=nonce, code_verifier=verifier
            )
        return str(url), json.dumps([state, nonce, verifier])

    def end(self, back: str, address: str, remembered: str) -> Vouched:
        """Whom the provider vouches for.

        Parameters
        ----------
        back : str
            As it was given to `begin`.
        address : str
            The whole address that the provider sent somebody back with.
        remembered : str
            What `begin` gave to remember.

        Raises
        ------
        UserError
            If it vouches for nobody, or not to us.
        OperatorError
            If it can't be reached.
        """
        try:
            state, nonce, verifier = json.loads(remembered)
        except ValueError:
            raise _REFUSED from None
        if "code" not in parse_qs(urlsplit(address).query):
            raise _REFUSED
        try:
            with self._client(back) as client:
                token = client.fetch_token(
                    self._ask("token_endpoint"),
                    authorization_response=address,
                    state=state,
                    code_verifier=verifier,
                )
                keys = KeySet.import_key_set(
                    client.request("GET", self._ask("jwks_uri"), withhold_token=True).json()
                )
            found = jwt.decode(str(token["id_token"]), keys, algorithms=_ALGORITHMS)
            wanted = {
                "iss": {"essential": True, "value": self._provider.issuer},
                "aud": {"essential": True, "value": self._provider.client_id},
                "nonce": {"essential": True, "value": nonce},
                "exp": {"essential": True},
                "sub": {"essential": True},
            }
            jwt.JWTClaimsRegistry(leeway=30, **wanted).validate(found.claims)  # type: ignore[arg-type]
        except (AuthlibBaseError, JoseError, ValueError, KeyError, TypeError):
            raise _REFUSED from None
        except httpx.HTTPError as error:
            raise OperatorError("The office's sign-in service can't be reached.") from error
        claims = found.claims
        name = claims.get(self._provider.claim)
        if not isinstance(name, str) or (
            self._provider.claim == "email" and claims.get("email_verified") is not True
        ):
            raise _REFUSED
        return Vouched(self._provider.issuer, str(claims["sub"]), name)

    def _client(self, back: str) -> Any:
        # Loaded when it is used: few offices need it, and its import warns every command of httpx.
        from authlib.integrations.httpx_client import OAuth2Client

        provider = self._provider
        return OAuth2Client(
            provider.client_id,
            provider.client_secret,
            scope="openid email profile",
            redirect_uri=back,
            code_challenge_method="S256",
            timeout=_SECONDS,
        )

    def _ask(self, what: str) -> str:
        """An address out of the provider's own document."""
        with self._lock:
            if self._about is None:
                where = f"{self._provider.issuer.rstrip('/')}/.well-known/openid-configuration"
                try:
                    said = httpx.get(where, timeout=_SECONDS).raise_for_status().json()
                except (httpx.HTTPError, ValueError) as error:
                    raise OperatorError("The office's sign-in service can't be reached.") from error
                if not isinstance(said, dict) or said.get("issuer") != self._provider.issuer:
                    raise OperatorError("The office's sign-in service calls itself something else.")
                self._about = said
            return str(self._about.get(what, ""))
