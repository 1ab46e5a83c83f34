"""Certificates are made once, renewed in time, and of one authority."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from spark_jobs.access.secrets import AUTHORITY, read_secret, secret_path
from spark_jobs.settings import load_settings
from spark_jobs.stack.certificates import (
    AUTHORITY_KEY,
    KAFKA,
    POSTGRES,
    RENEWED_DAYS,
    SERVER_DAYS,
    authority_of,
    certificate_name,
    ending,
    ensure_certificate,
    new_authority,
    signed,
)
from spark_jobs.stack.errors import AuthorityKeyMissingError
from spark_jobs.stack.secrets import write_secret


@pytest.fixture
def settings(tmp_path):
    return load_settings(tmp_path, security={"enabled": True})


def certificate(settings, server):
    return x509.load_pem_x509_certificate(read_secret(settings, certificate_name(server)).encode())


def test_servers_that_start_at_once_share_one_authority(settings):
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda one: ensure_certificate(settings, one), [KAFKA, POSTGRES] * 4))
    authority = x509.load_pem_x509_certificate(read_secret(settings, AUTHORITY).encode())
    for server in (KAFKA, POSTGRES):
        certificate(settings, server).verify_directly_issued_by(authority)


def test_keys_are_the_owners(settings):
    ensure_certificate(settings, KAFKA)
    for name in (AUTHORITY_KEY, AUTHORITY, certificate_name(KAFKA)):
        assert stat.S_IMODE(secret_path(settings, name).stat().st_mode) == 0o600


def test_a_certificate_is_kept_until_it_is_due(settings):
    first = ensure_certificate(settings, KAFKA)
    assert ensure_certificate(settings, KAFKA) == first


@pytest.mark.parametrize("days", [-1, RENEWED_DAYS - 1])
def test_a_certificate_that_is_due_is_recreated(settings, days):
    write_own(settings, days=days)
    before = certificate(settings, KAFKA)
    ensure_certificate(settings, KAFKA)
    assert certificate(settings, KAFKA).not_valid_after_utc > before.not_valid_after_utc


def test_the_authority_is_renewed_before_a_server_could_outlive_it(settings):
    server = ensure_certificate(settings, KAFKA)
    key = load_pem_private_key(read_secret(settings, AUTHORITY_KEY).encode(), password=None)
    old = authority_of(key, days=SERVER_DAYS - 1)
    write_secret(settings, AUTHORITY, old.public_bytes(Encoding.PEM).decode())
    # A server that runs keeps its certificate, which clients with either file accept.
    assert ensure_certificate(settings, KAFKA) == server
    renewed = x509.load_pem_x509_certificate(read_secret(settings, AUTHORITY).encode())
    ends = certificate(settings, KAFKA).not_valid_after_utc
    assert old.not_valid_after_utc < ends < renewed.not_valid_after_utc
    for authority in (old, renewed):
        certificate(settings, KAFKA).verify_directly_issued_by(authority)
    assert ensure_certificate(settings, KAFKA) == server
    assert x509.load_pem_x509_certificate(read_secret(settings, AUTHORITY).encode()) == renewed


def test_certificates_that_end_soon_are_named(settings):
    now = datetime.now(UTC)
    assert ending(settings, now=now) == {}
    write_own(settings, days=RENEWED_DAYS - 1)
    assert list(ending(settings, now=now)) == [certificate_name(KAFKA)]
    assert ending(settings, now=now - timedelta(days=2)) == {}
    assert set(ending(settings, now=now + timedelta(days=3650))) == {
        AUTHORITY,
        certificate_name(KAFKA),
    }
    # A file that is no certificate is no problem of this check.
    secret_path(settings, AUTHORITY).write_text("none")
    assert list(ending(settings, now=now)) == [certificate_name(KAFKA)]


def test_a_certificate_of_another_authority_is_recreated(settings):
    ensure_certificate(settings, KAFKA)
    key, other = new_authority()
    foreign = signed(KAFKA, key, other, days=300)
    write_secret(settings, certificate_name(KAFKA), foreign)
    assert ensure_certificate(settings, KAFKA) != foreign


def test_without_the_authority_key_no_certificate_is_renewed(settings):
    write_own(settings, days=-1)
    secret_path(settings, AUTHORITY_KEY).unlink()
    before = {name: read_secret(settings, name) for name in (AUTHORITY, certificate_name(KAFKA))}
    assert ensure_certificate(settings, KAFKA) == before[certificate_name(KAFKA)]
    assert {name: read_secret(settings, name) for name in before} == before


def test_only_the_broker_may_show_its_certificate_as_a_client(settings):
    uses = {}
    for server in (KAFKA, POSTGRES):
        ensure_certificate(settings, server)
        found = certificate(settings, server).extensions.get_extension_for_class(
            x509.ExtendedKeyUsage
        )
        uses[server] = x509.ExtendedKeyUsageOID.CLIENT_AUTH in found.value
    assert uses == {KAFKA: True, POSTGRES: False}


def write_own(settings, *, days):
    """A certificate of the settings' authority that ends so soon."""
    ensure_certificate(settings, KAFKA)
    key = load_pem_private_key(read_secret(settings, AUTHORITY_KEY).encode(), password=None)
    authority = x509.load_pem_x509_certificate(read_secret(settings, AUTHORITY).encode())
    write_secret(settings, certificate_name(KAFKA), signed(KAFKA, key, authority, days=days))


def test_an_authority_from_elsewhere_is_not_replaced_by_an_own_one(settings):
    """A certificate that was forgotten: the authority that clients trust stays as it is."""
    write_own(settings, days=300)
    secret_path(settings, AUTHORITY_KEY).unlink()
    before = {name: read_secret(settings, name) for name in (AUTHORITY, certificate_name(KAFKA))}
    with pytest.raises(AuthorityKeyMissingError) as caught:
        ensure_certificate(settings, POSTGRES)
    assert caught.value.file == secret_path(settings, certificate_name(POSTGRES))
    assert {name: read_secret(settings, name) for name in before} == before
    assert not secret_path(settings, AUTHORITY_KEY).exists()


def test_an_authority_of_another_key_is_not_renewed(settings):
    """Certificates of a company, beside a key that the stack made before."""
    ensure_certificate(settings, KAFKA)
    key, _ = new_authority()
    company = authority_of(key, days=SERVER_DAYS - 1)
    server = signed(KAFKA, key, company, days=300)
    write_secret(settings, AUTHORITY, company.public_bytes(Encoding.PEM).decode())
    write_secret(settings, certificate_name(KAFKA), server)
    before = read_secret(settings, AUTHORITY)
    assert ensure_certificate(settings, KAFKA) == server.strip()
    assert read_secret(settings, AUTHORITY) == before
