"""The guard of HTTP: it answers requests for a name of the port's, with its password if it has one.

A page that a browser has open can have its own name lead to this machine, and would then read what is
answered here (DNS rebinding). It cannot choose what the browser says it asks for: the `Host` of its
requests is its own name. An address is no such name, and nobody can claim another's.
"""

from __future__ import annotations

import base64
import hmac
import ipaddress
import logging
import re
import socket
from typing import Final

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from binlane.errors import ConfigError
from binlane.live.web.settings import HttpSettings

MAY_KNOW: Final = web.RequestKey("may_know", bool)
"""True if whoever asks is to be told more than that all is well, or not."""
UNGUARDED_PATHS: Final = frozenset(("/healthz",))
"""Paths that answer without the password, too: who restarts what is not well need not have it."""

_HOST: Final = re.compile(r"(?:\[(?P<six>[^\]]*)\]|(?P<name>[^:]*))(?::\d*)?")
_SHOWN_MAX: Final = 100

logger = logging.getLogger(__name__)


class Guard:
    """Decides for each request, by the settings of the moment.

    Args:
        settings: Under which names it is asked, and where its password stands.
    """

    def __init__(self, settings: HttpSettings) -> None:
        self._own = socket.gethostname().lower()
        self._is_told = False
        self.use(settings)

    def use(self, settings: HttpSettings) -> None:
        """Decide by other settings from now on."""
        self._settings = settings
        names = ("localhost", self._own, settings.address, *settings.hosts)
        self._names = frozenset(_bare(name) for name in names)

    def knows(self, host: str) -> bool:
        """True if a `Host` names this port: an address, a loopback name, the machine's, a setting's."""
        matched = _HOST.fullmatch(host.strip())
        if matched is None:
            return False
        if matched["six"] is not None:
            return _is_address(matched["six"])
        return _bare(matched["name"]) in self._names or _is_address(matched["name"])

    @property
    def middleware(self) -> Middleware:
        """The middleware that stands before an application's handlers."""

        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            for host in request.headers.getall(hdrs.HOST, ()):
                if not self.knows(host):
                    return _stranger(host)
            try:
                may_know = self._is_let_in(request.headers.get(hdrs.AUTHORIZATION, ""))
            except ConfigError as error:
                if not self._is_told:
                    logger.error("HTTP: nobody is let in: %s", error)  # noqa: TRY400  # no fault of ours
                self._is_told, may_know = True, False
            else:
                self._is_told = False
            request[MAY_KNOW] = may_know
            if not may_know and request.path not in UNGUARDED_PATHS:
                return _unknown()
            return await handler(request)

        return guarded

    def _is_let_in(self, authorization: str) -> bool:
        """True if no password is needed, or it is given: as Basic's, of any user, or as Bearer's token.

        Raises:
            ConfigError: If it cannot be read.
        """
        secret = self._settings.secret()
        if secret is None:
            return True
        return hmac.compare_digest(_given(authorization).encode(), secret.encode())


def is_loopback(address: str) -> bool:
    """True if an address is reached from this machine alone."""
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _given(authorization: str) -> str:
    """The password that a request carries; empty without one, which no password is."""
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return given.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(given.strip(), validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _bare(name: str) -> str:
    return name.lower().removesuffix(".")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _stranger(host: str) -> web.Response:
    shown = host[:_SHOWN_MAX].encode("ascii", "backslashreplace").decode()
    text = (
        f"binlane is not asked under the name {shown!r}: list it as [http] hosts if it should be\n"
    )
    return _refusal(403, text)


def _unknown() -> web.Response:
    answer = _refusal(401, "binlane asks for the password of [http] password_file, of any user\n")
    answer.headers[hdrs.WWW_AUTHENTICATE] = 'Basic realm="binlane", charset="UTF-8"'
    return answer


def _refusal(status: int, text: str) -> web.Response:
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return web.Response(status=status, text=text, headers=headers)
