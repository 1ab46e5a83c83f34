"""The conditions of a client that is not let in, or that does not let itself in."""

from __future__ import annotations

from pathlib import Path

from spark_jobs.errors import LakehouseError

SEE = "docs/security.md says how secrets and certificates are renewed."


class SecretMissingError(LakehouseError):
    """A generated secret that is not there."""

    condition = "SECRET_MISSING"

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        super().__init__(
            f"secret {name!r} does not exist",
            detail=f'It would be in "{path}".',
            hint="Start the stack with `make up`, which generates it.",
        )


class CertificateRefusedError(LakehouseError):
    """The server's certificate is out of date, of a foreign authority, or of another host."""

    condition = "CERTIFICATE_REFUSED"

    def __init__(self, server: str, cause: str, *, authority: Path) -> None:
        self.server = server
        super().__init__(
            f"the certificate of {server} is refused",
            detail=f'{cause[:1].upper()}{cause[1:]}. Trusted is the authority in "{authority}".',
            hint="Start the stack anew: `make down` and `make up` make a certificate that is due. "
            f"For a server elsewhere, put its authority into that file. {SEE}",
        )


class LoginRefusedError(LakehouseError):
    """The server does not know the user, or not with this password."""

    condition = "LOGIN_REFUSED"

    def __init__(self, server: str, user: str, *, secret: Path) -> None:
        self.server = server
        self.user = user
        super().__init__(
            f"{server} refuses the login of {user!r}",
            detail=f'The password was that of "{secret}".',
            hint=f"Put the password that the server knows into that file, or start the stack anew: "
            f"`make down` and `make up` make the two agree. {SEE}",
        )


class TokenRefusedError(LakehouseError):
    """A Spark Connect server asks for a token, and got none or another one."""

    condition = "TOKEN_REFUSED"

    def __init__(self, server: str, *, secret: Path, sent: bool) -> None:
        self.server = server
        self.sent = sent
        told = f'The token was that of "{secret}".'
        super().__init__(
            f"Spark Connect server {server!r} refuses the call",
            detail=told if sent else f'No token was sent; it would be in "{secret}".',
            hint="Put the token that the server knows into that file. The local stack generates "
            f"one: `make up`. {SEE}",
        )


class AccessDeniedError(LakehouseError):
    """The server knows the user, who may not do this."""

    condition = "ACCESS_DENIED"

    def __init__(self, server: str, user: str, what: str) -> None:
        self.server = server
        self.user = user
        super().__init__(
            f"{server} denies {user!r} what it asked for",
            detail=f"{what}.",
            hint="Let somebody who may grant it do so, or ask as another user; `make up` grants "
            f"what the declarations ask for. {SEE}",
        )
