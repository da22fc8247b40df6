"""Who may do what: credentials, roles, and where a request may come from."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

import jwt
from starlette.requests import cookie_parser

from ..types.approval import Principal
from .problems import Problem

Role = Literal["run", "answer", "admin"]
ROLES: tuple[Role, ...] = ("run", "answer", "admin")

#: Names of this machine itself, as they stand in `Host`.
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
#: As `allow_hosts`: any.
ANY_HOST = frozenset({"*"})
_SHORTEST_SECRET = 32
_PUBLIC_KEY_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]


@dataclass(frozen=True)
class JwtRules:
    """Which tokens are believed: signed with `key` (a secret, or a public key in PEM), for this audience and issuer.

    `leeway`: by how many seconds clocks may differ. Claims: `sub`, `exp`, and `roles`, a list of strings.
    Raises `ValueError` for a secret that is too short to be one.
    """

    key: str
    audience: str | None = None
    issuer: str | None = None
    leeway: float = 30.0

    def __post_init__(self) -> None:
        if not self._is_public_key() and len(self.key.encode()) < _SHORTEST_SECRET:
            raise ValueError(
                f"the JWT key is a secret of at least {_SHORTEST_SECRET} bytes, or a public key in PEM; "
                "`openssl rand -hex 32` makes a secret"
            )

    def __repr__(self) -> str:
        return f"JwtRules(audience={self.audience!r}, issuer={self.issuer!r})"

    def _is_public_key(self) -> bool:
        return self.key.lstrip().startswith("-----BEGIN")

    def principal(self, token: str) -> Principal:
        """Whose token it is; raises `Problem`."""
        try:
            claims = jwt.decode(
                token,
                self.key,
                algorithms=_PUBLIC_KEY_ALGORITHMS if self._is_public_key() else ["HS256", "HS384", "HS512"],
                audience=self.audience,
                issuer=self.issuer,
                leeway=self.leeway,
                options={"require": ["exp", "sub"], "verify_aud": self.audience is not None},
            )
        except jwt.PyJWTError as error:
            raise _unknown(f"the token is not accepted: {error}") from None
        return _principal(claims)


def _principal(claims: Mapping[str, Any]) -> Principal:
    subject, roles = claims["sub"], claims.get("roles", [])
    if not isinstance(subject, str) or not subject:
        raise _unknown("the token's sub is no name")
    if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
        raise _unknown("the token's roles are no list of strings")
    return Principal(subject, roles)


#: Whoever has the one token of a server.
TOKEN_BEARER = Principal("token", list(ROLES))


@dataclass(frozen=True)
class Access:
    """The rules of one server. Without a token and JWT rules everybody who reaches it may do everything.

    `allow_hosts`: what may stand in `Host`, without the port; `*` is anything, which is safe with credentials only.
    `allow_origins`: other sites whose pages may call, as `https://app.example.com`.
    """

    token: str | None = None
    jwt: JwtRules | None = None
    allow_hosts: frozenset[str] = LOOPBACK
    allow_origins: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"Access(token={'***' if self.token else None}, jwt={self.jwt!r}, allow_hosts={self.allow_hosts!r})"

    @property
    def guarded(self) -> bool:
        """Whether credentials are needed."""
        return self.token is not None or self.jwt is not None

    def check_place(self, scheme: str, headers: Mapping[str, str]) -> None:
        """Refuse pages of other sites, and names that lead here by mistake or by a trick of DNS; raises `Problem`."""
        host = headers.get("host", "").lower()
        if self.allow_hosts != ANY_HOST and _name(host) not in self.allow_hosts:
            raise Problem(421, f"this server does not answer for the host {host!r}; --allow-host adds one")
        origin = headers.get("origin")
        if origin is None or origin in self.allow_origins:
            return
        if urlsplit(origin).netloc.lower() != host or not origin.startswith(("http://", "https://")):
            raise Problem(403, f"pages of {origin} may not call this server; --allow-origin adds a site")

    def who(self, headers: Mapping[str, str]) -> Principal | None:
        """Who sends a request, `None` where nobody has to say so; raises `Problem`."""
        if not self.guarded:
            return None
        scheme, _, given = headers.get("authorization", "").partition(" ")
        given = given.strip() if scheme.lower() == "bearer" else _of_session(headers)
        if not given:
            raise _unknown("send the header Authorization: Bearer <token>")
        if self.token is not None and hmac.compare_digest(given.encode(), self.token.encode()):
            return TOKEN_BEARER
        if self.jwt is None:
            raise _unknown("the token is not accepted")
        return self.jwt.principal(given)


def session_cookie(headers: Mapping[str, str]) -> str:
    """The cookie that holds a signed-in page's token: browsers do not tell the ports of a host apart."""
    port = headers.get("host", "").rpartition(":")[2]
    return f"timbal_session_{port}" if port.isdecimal() else "timbal_session"


def _of_session(headers: Mapping[str, str]) -> str:
    """The token of a signed-in page, empty where there is none."""
    held = cookie_parser(headers.get("cookie", "")).get(session_cookie(headers), "")
    try:
        return bytes.fromhex(held).decode()
    except ValueError:
        return ""


def check_role(principal: Principal | None, roles: Sequence[Role]) -> None:
    """Raises `Problem` when none of these roles, nor `admin`, is the principal's."""
    if principal is not None and not {*roles, "admin"} & set(principal.roles):
        raise Problem(403, f"{principal.sub} has none of the roles that may do this: {', '.join((*roles, 'admin'))}")


def is_admin(principal: Principal | None) -> bool:
    """Whether somebody may see the runs of all."""
    return principal is None or "admin" in principal.roles


def _name(host: str) -> str:
    """A `Host` without its port."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _unknown(detail: str) -> Problem:
    return Problem(401, detail, headers={"WWW-Authenticate": "Bearer"})
