"""The conditions of failed authentication, authorization and verification."""

from __future__ import annotations

from dataclasses import KW_ONLY
from pathlib import Path

from spark_jobs.errors import LakehouseError

SEE = "docs/security.md says how secrets and certificates are renewed."


class SecretMissingError(LakehouseError):
    """A generated secret does not exist."""

    condition = "SECRET_MISSING"
    name: str
    path: Path
    primary = "secret {name!r} does not exist"
    detail = 'It would be in "{path}".'
    hint = (
        "Start the stack with `make up`, which generates it; "
        "if it runs, stop it with `make down` before."
    )


class CertificateRefusedError(LakehouseError):
    """The server's certificate is expired, of an unknown authority, or of another host."""

    condition = "CERTIFICATE_REFUSED"
    server: str
    cause: str
    _: KW_ONLY
    authority: Path
    primary = "the certificate of {server} is refused"
    detail = '{sentence}. The trusted authority is in "{authority}".'
    hint = (
        "Restart the stack: `make down` and `make up` renew an expired certificate. "
        f"For an external server, put its authority into that file. {SEE}"
    )

    @property
    def sentence(self) -> str:
        return f"{self.cause[:1].upper()}{self.cause[1:]}"


class LoginRefusedError(LakehouseError):
    """The server does not accept the user with this password."""

    condition = "LOGIN_REFUSED"
    server: str
    user: str
    _: KW_ONLY
    secret: Path
    primary = "{server} refuses the login of {user!r}"
    detail = 'The password was read from "{secret}".'
    hint = (
        "Put the password that the server knows into that file, or start the stack again: "
        f"`make down` and `make up` make the two agree. {SEE}"
    )


class TokenRefusedError(LakehouseError):
    """A Spark Connect server requires a token, and got none or a different one."""

    condition = "TOKEN_REFUSED"
    server: str
    _: KW_ONLY
    secret: Path
    sent: bool
    primary = "Spark Connect server {server!r} refuses the call"
    detail = '{tried} "{secret}".'
    hint = (
        "Put the token that the server knows into that file. The local stack generates one: "
        f"`make up`. {SEE}"
    )

    @property
    def tried(self) -> str:
        return "The token was that of" if self.sent else "No token was sent; it would be in"


class AccessDeniedError(LakehouseError):
    """The server accepts the user, who lacks the right for this."""

    condition = "ACCESS_DENIED"
    server: str
    user: str
    what: str
    primary = "{server} denies {user!r} the requested access"
    detail = "{what}."
    hint = (
        "Let somebody who may grant it do so, or ask as another user; `make up` grants what the "
        f"declarations ask for. {SEE}"
    )


class AirflowAwayError(LakehouseError):
    """Airflow's api-server does not answer, or refuses the user who emits events."""

    condition = "AIRFLOW_AWAY"
    url: str
    cause: str
    primary = "Airflow at {url} accepts no events: {cause}"
    hint = (
        "`tidemark stack status` shows whether its api-server runs. Events wait and are sent "
        "later. For an external Airflow, set airflow.url and put the password of its user "
        "`announcer` into secrets/airflow-announcer."
    )
