"""The local stack's own certificate authority, and the certificates of the servers.

They are created at a start of the stack, and renewed at a start within a month of their expiry. The
authority is renewed with the same key, before a server's certificate could outlive it: certificates
that it signed stay valid, also for clients that know its former certificate, until that expires.
Without the authority's key, the existing certificates are managed elsewhere and not renewed. Keys
are secrets: one is copied out of the directory of secrets only for a server of another account.
"""

from __future__ import annotations

import fcntl
import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from spark_jobs.access.secrets import AUTHORITY, read_secret, secret_path
from spark_jobs.settings import Settings
from spark_jobs.stack.errors import AuthorityKeyMissingError
from spark_jobs.stack.ports import LOOPBACK
from spark_jobs.stack.secrets import write_secret

AUTHORITY_KEY = "tls/ca.key"
AUTHORITY_DAYS = 3650
SERVER_DAYS = 397
# A certificate that ends sooner is recreated at a start.
RENEWED_DAYS = 30
KAFKA = "broker"
POSTGRES = "postgres"
CONNECT = "connect"
ENDPOINT = "endpoint"


def certificate_name(server: str) -> str:
    """The name of the secret that holds a server's key and certificate, in this order, as PEM."""
    return f"tls/{server}.pem"


def ensure_certificate(settings: Settings, server: str) -> str:
    """A server's key and certificate as PEM; created if there is no valid one.

    Raises:
        AuthorityKeyMissingError: there is none, and the authority cannot sign one here.
    """
    with _one_at_a_time(settings):
        name = certificate_name(server)
        path = secret_path(settings, name)
        if not secret_path(settings, AUTHORITY_KEY).exists():
            if path.exists():
                return read_secret(settings, name)
            if secret_path(settings, AUTHORITY).exists():
                raise AuthorityKeyMissingError(path)
        key, authority = _ensure_authority(settings)
        if not path.exists() or not serves(path.read_text(), authority):
            write_secret(settings, name, signed(server, key, authority, days=SERVER_DAYS))
        return read_secret(settings, name)


def key_store(pem: str, password: str) -> bytes:
    """A server's key and certificate as Java's servers read them, encrypted with a password.

    Args:
        pem: the key, its certificate, and intermediate certificates, if any.
        password: what encrypts them.
    """
    key = load_pem_private_key(pem.encode(), password=None)
    # Servers have no others; their authors would not sign them.
    assert isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey)  # noqa: S101
    own, *between = x509.load_pem_x509_certificates(pem.encode())
    encryption = BestAvailableEncryption(password.encode())
    return pkcs12.serialize_key_and_certificates(None, key, own, between, encryption)


def trust_store(pem: str) -> bytes:
    """An authority's certificate as a trust store for Java; not secret, without password."""
    authority = pkcs12.PKCS12Certificate(_certificate(pem), b"tidemark")
    return pkcs12.serialize_java_truststore([authority], NoEncryption())


def signed(
    server: str, key: ec.EllipticCurvePrivateKey, authority: x509.Certificate, *, days: int
) -> str:
    """A new key and its certificate for this machine, as PEM.

    Args:
        server: the common name; the broker's controller knows the broker by it.
        key: the authority's.
        authority: whose certificate it is.
        days: until it ends.
    """
    own = ec.generate_private_key(ec.SECP256R1())
    usages = [ExtendedKeyUsageOID.SERVER_AUTH]
    if server in {KAFKA, CONNECT}:
        # The broker shows it to its controller too, and a worker of Connect to another one.
        usages.append(ExtendedKeyUsageOID.CLIENT_AUTH)
    hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(LOOPBACK))]
    certificate = (
        _builder(_name(server), authority.subject, own, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    return _pem(own) + certificate.public_bytes(Encoding.PEM).decode()


def new_authority() -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    """A new authority: its key and its certificate, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    return key, authority_of(key)


def authority_of(
    key: ec.EllipticCurvePrivateKey, *, days: int = AUTHORITY_DAYS
) -> x509.Certificate:
    """The certificate of the authority with this key."""
    name = _name("Tidemark local authority")
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        _builder(name, name, key, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _ensure_authority(settings: Settings) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    paths = [secret_path(settings, name) for name in (AUTHORITY_KEY, AUTHORITY)]
    if not all(path.exists() for path in paths):
        key, certificate = new_authority()
        write_secret(settings, AUTHORITY_KEY, _pem(key))
        write_secret(settings, AUTHORITY, certificate.public_bytes(Encoding.PEM).decode())
    found = load_pem_private_key(read_secret(settings, AUTHORITY_KEY).encode(), password=None)
    assert isinstance(found, ec.EllipticCurvePrivateKey)  # noqa: S101 - only this module writes it
    authority = _certificate(read_secret(settings, AUTHORITY))
    # A company's certificate may be there, beside a key that was made before.
    own = authority.public_key() == found.public_key()
    if own and authority.not_valid_after_utc < datetime.now(UTC) + timedelta(days=SERVER_DAYS):
        authority = authority_of(found)
        write_secret(settings, AUTHORITY, authority.public_bytes(Encoding.PEM).decode())
    return found, authority


def ending(settings: Settings, *, now: datetime) -> dict[str, datetime]:
    """The certificates that end within ``RENEWED_DAYS``, or have ended, by the file's name.

    Those of other systems too, as far as they are among the secrets.
    """
    found = {}
    for path in sorted(settings.secrets_dir.rglob("*.pem")):
        with suppress(OSError, ValueError):
            certificates = x509.load_pem_x509_certificates(path.read_bytes())
            end = min(one.not_valid_after_utc for one in certificates)
            if end < now + timedelta(days=RENEWED_DAYS):
                found[str(path.relative_to(settings.secrets_dir))] = end
    return found


def serves(pem: str, authority: x509.Certificate) -> bool:
    """Whether a certificate was signed by this authority and does not expire soon."""
    certificate = _certificate(pem)
    if certificate.not_valid_after_utc < datetime.now(UTC) + timedelta(days=RENEWED_DAYS):
        return False
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, InvalidSignature):
        return False
    return True


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # The clocks of machines differ.
        .not_valid_before(min(now, now + timedelta(days=days)) - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=days))
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _certificate(pem: str) -> x509.Certificate:
    """The certificate in a PEM text that may also hold a key."""
    return x509.load_pem_x509_certificate(pem.encode())


def _pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@contextmanager
def _one_at_a_time(settings: Settings) -> Iterator[None]:
    """A lock, because parts that start at the same time share one authority."""
    settings.state.mkdir(parents=True, exist_ok=True)
    with (settings.state / "certificates.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
