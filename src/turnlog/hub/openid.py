"""OpenID Connect: the authorization code flow with PKCE, state and nonce, through Authlib.

What belongs to one sign-in is kept in the table of secrets until it is used: any process can finish what another began.
A person is who the provider says by `sub`; an address of mail decides nothing.
"""

from __future__ import annotations

import secrets
from typing import Any, Final, Literal, TypeAlias

import httpx2
import msgspec
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from starlette.concurrency import run_in_threadpool

from turnlog.hub.people.secrets import Secrets
from turnlog.hub.people.teams import Identity
from turnlog.hub.settings import OpenIdSettings

ATTEMPT_SECONDS: Final = 600

_TIMEOUT: Final = 10.0

_LEEWAY_SECONDS: Final = 60
"""How wrong the clocks of hub and provider may be."""


Reason: TypeAlias = Literal["refused", "ended", "failed", "away"]
"""Why nobody was signed in: the person or the provider said no, the attempt is another one, the answer is not right,
the provider does not answer."""


class OpenIdError(Exception):
    """Signing in with the provider failed. The message is for the hub's log."""

    def __init__(self, message: str, reason: Reason) -> None:
        """Keep the reason, which the page puts into words."""
        super().__init__(message)
        self.reason: Reason = reason


class _Provider(msgspec.Struct):
    """What a provider says of itself."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    id_token_signing_alg_values_supported: tuple[str, ...] = ("RS256",)


class _Attempt(msgspec.Struct):
    """A sign-in under way."""

    state: str
    nonce: str
    verifier: str
    invitation: str | None


class OpenId:
    """A provider that people sign in with."""

    def __init__(self, settings: OpenIdSettings, kept: Secrets) -> None:
        """Ask the provider nothing before somebody signs in."""
        self._settings = settings
        self._kept = kept
        self._provider: _Provider | None = None

    async def begin(self, callback: str, invitation: str | None) -> tuple[str, str]:
        """Where to send a browser, and what it must have when it comes back. Raises OpenIdError."""
        provider = await self._discover()
        attempt = _Attempt(secrets.token_urlsafe(24), secrets.token_urlsafe(24), secrets.token_urlsafe(48), invitation)
        async with self._client(callback) as client:
            address, _ = client.create_authorization_url(
                provider.authorization_endpoint,
                state=attempt.state,
                nonce=attempt.nonce,
                code_verifier=attempt.verifier,
            )
        data = msgspec.json.encode(attempt).decode()
        cookie, _ = await run_in_threadpool(lambda: self._kept.make("attempt", data=data, seconds=ATTEMPT_SECONDS))
        return address, cookie

    async def finish(self, answer: dict[str, str], cookie: str, callback: str) -> tuple[Identity, str | None]:
        """Who has signed in, and the invitation that they came with. Raises OpenIdError."""
        # Not every provider sends the state with a refusal, and it opens nothing.
        if "error" in answer:
            is_refused = answer["error"] == "access_denied"
            raise OpenIdError(f"the provider answers {answer['error'][:100]}", "refused" if is_refused else "failed")
        kept = await run_in_threadpool(self._kept.redeem, cookie, "attempt") if cookie else None
        if kept is None or kept.data is None:
            raise OpenIdError("a sign-in is too old, or was begun in another browser", "ended")
        attempt = msgspec.json.decode(kept.data, type=_Attempt)
        if not secrets.compare_digest(answer.get("state", "").encode(), attempt.state.encode()):
            raise OpenIdError("an answer belongs to another sign-in", "ended")
        if "code" not in answer:
            raise OpenIdError("the provider answers without a code", "failed")
        provider = await self._discover()
        try:
            async with self._client(callback) as client:
                token: dict[str, Any] = await client.fetch_token(
                    provider.token_endpoint, code=answer["code"], code_verifier=attempt.verifier
                )
                keys = (await client.request("GET", provider.jwks_uri, withhold_token=True)).raise_for_status().json()
            claims = _claims(token.get("id_token", ""), keys, provider, self._settings.client_id, attempt.nonce)
        except (AuthlibBaseError, JoseError, httpx2.HTTPError, ValueError) as error:
            raise OpenIdError(f"the provider's answer cannot be used: {type(error).__name__}", "failed") from error
        name = claims.get("name") or claims.get("preferred_username") or claims.get("email") or claims["sub"]
        identity = Identity(
            provider=provider.issuer, subject=str(claims["sub"]), name=str(name)[:200], email=claims.get("email")
        )
        return identity, attempt.invitation

    # Authlib says nothing of the types of what it has.
    def _client(self, callback: str) -> Any:
        return AsyncOAuth2Client(
            self._settings.client_id,
            self._settings.client_secret,
            scope="openid profile email",
            redirect_uri=callback,
            code_challenge_method="S256",
            timeout=_TIMEOUT,
        )

    async def _discover(self) -> _Provider:
        if self._provider is None:
            address = f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration"
            try:
                async with httpx2.AsyncClient(timeout=_TIMEOUT) as client:
                    found = (await client.get(address)).raise_for_status()
                provider = msgspec.json.decode(found.content, type=_Provider)
            except (httpx2.HTTPError, msgspec.DecodeError) as error:
                raise OpenIdError(f"the provider does not answer: {type(error).__name__}", "away") from error
            if provider.issuer.rstrip("/") != self._settings.issuer.rstrip("/"):
                raise OpenIdError("the provider says that it is another one", "away")
            self._provider = provider
        return self._provider


def _claims(text: str, keys: Any, provider: _Provider, client: str, nonce: str) -> dict[str, Any]:
    """What the provider says of a person. Raises JoseError or AuthlibBaseError for a token that is not right."""
    # "none" and keys that are shared are no signatures of the provider.
    named = provider.id_token_signing_alg_values_supported
    allowed = [each for each in named if each.startswith(("RS", "ES", "PS", "Ed"))]
    token = jwt.decode(text, KeySet.import_key_set(keys), algorithms=allowed)
    claims: Any = CodeIDToken(
        token.claims,
        token.header,
        options={
            "iss": {"essential": True, "value": provider.issuer},
            "aud": {"essential": True, "value": client},
            "nonce": {"essential": True, "value": nonce},
            "sub": {"essential": True},
        },
        params={"client_id": client, "nonce": nonce},
    )
    claims.validate(leeway=_LEEWAY_SECONDS)
    return claims
