from __future__ import annotations

import socket
import ssl
import stat
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key, pkcs12

from spark_jobs.access.secrets import AUTHORITY, read_secret
from spark_jobs.endpoint_sections import EndpointSettings
from spark_jobs.errors import SettingError
from spark_jobs.sections import Ports, SecuritySettings
from spark_jobs.settings import Settings, load_settings
from spark_jobs.stack.catalog import all_steps, check_part_names
from spark_jobs.stack.certificates import AUTHORITY_KEY, certificate_name, key_store, signed
from spark_jobs.stack.endpoint import (
    NAME,
    PULSE_FAILURES,
    SECRET,
    USER,
    Pulse,
    jdbc_url,
    may_enter,
    prepare_endpoint,
    probe_endpoint,
    served_key_store,
    trust_store_file,
)
from spark_jobs.stack.errors import EndpointSilentError
from spark_jobs.stack.secrets import write_secret

COMPLETE, BAD = b"\x05", b"\x03"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = int(chosen.getsockname()[1])
    return load_settings(tmp_path, state_dir=tmp_path / "state", ports=Ports(endpoint=port))


@pytest.fixture
def secured(settings: Settings) -> Settings:
    """With security on, and prepared."""
    security = settings.security.model_copy(update={"enabled": True})
    secured = settings.model_copy(update={"security": security})
    prepare_endpoint(secured)
    return secured


@pytest.fixture
def server(settings: Settings) -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", settings.ports.endpoint)) as listening:
        yield listening


def answered(
    server: socket.socket, answer: bytes, *, tls: ssl.SSLContext | None = None
) -> list[bytes]:
    """Answer one client; what it said is there once it has been answered."""
    said: list[bytes] = []

    def serve() -> None:
        client, _ = server.accept()
        # A client that refuses the certificate goes away.
        with suppress(ssl.SSLError), tls.wrap_socket(client, True) if tls else client as client:
            said.append(client.recv(1000))
            client.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    return said


def test_the_endpoint_starts_only_when_named(settings: Settings) -> None:
    steps = all_steps(settings)
    assert NAME not in check_part_names(steps, [])
    assert check_part_names(steps, [NAME]) == (NAME,)


def test_user_and_password_are_both_asked_for(settings: Settings) -> None:
    assert not may_enter(settings, USER, "")
    prepare_endpoint(settings)
    password = read_secret(settings, SECRET)
    assert may_enter(settings, USER, password)
    assert not may_enter(settings, "admin", password)
    assert not may_enter(settings, USER, password[:-1])
    assert not may_enter(settings, USER, "é")
    write_secret(settings, SECRET, "another")
    assert may_enter(settings, USER, "another")
    prepare_endpoint(settings)
    assert read_secret(settings, SECRET) == "another"


def test_it_serves_once_it_lets_its_user_in(settings: Settings, server: socket.socket) -> None:
    assert "does not exist" in (probe_endpoint(settings) or "")
    prepare_endpoint(settings)
    said = answered(server, COMPLETE)
    assert probe_endpoint(settings) is None
    assert said[0].startswith(b"\x01\x00\x00\x00\x05PLAIN\x02")
    assert said[0].endswith(f"\0{USER}\0{read_secret(settings, SECRET)}".encode())
    answered(server, BAD)
    assert probe_endpoint(settings) == "does not let its user in"


def test_a_server_that_refuses_all_logins_exits(
    settings: Settings, server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_jobs.stack.endpoint.PULSE_SECONDS", 0)
    prepare_endpoint(settings)
    pulse = Pulse(settings)
    for _ in range(PULSE_FAILURES - 1):
        answered(server, BAD)
        pulse.check()
    answered(server, COMPLETE)
    pulse.check()
    assert pulse.failed == 0
    for _ in range(PULSE_FAILURES - 1):
        answered(server, BAD)
        pulse.check()
    answered(server, BAD)
    with pytest.raises(EndpointSilentError, match="does not let its user in"):
        pulse.check()


def test_the_port_is_not_open_yet(settings: Settings) -> None:
    prepare_endpoint(settings)
    assert probe_endpoint(settings) == "does not listen yet"


def own_certificate(settings: Settings, *, days: int = 10) -> str:
    """A certificate of the settings' authority that ends so soon."""
    key = load_pem_private_key(read_secret(settings, AUTHORITY_KEY).encode(), password=None)
    authority = x509.load_pem_x509_certificate(read_secret(settings, AUTHORITY).encode())
    return signed(NAME, key, authority, days=days)  # type: ignore[arg-type]


def shown(settings: Settings, pem: str) -> ssl.SSLContext:
    """What a server shows its clients."""
    file = settings.state / "shown.pem"
    file.write_text(pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def test_with_security_it_serves_once_its_certificate_is_trusted(
    secured: Settings, server: socket.socket
) -> None:
    pem = read_secret(secured, certificate_name(NAME))
    said = answered(server, COMPLETE, tls=shown(secured, pem))
    assert probe_endpoint(secured) is None
    assert said[0].endswith(f"\0{USER}\0{read_secret(secured, SECRET)}".encode())
    expired = own_certificate(secured, days=-1)
    said = answered(server, COMPLETE, tls=shown(secured, expired))
    assert "certificate has expired" in (probe_endpoint(secured) or "")
    assert said == []


def test_the_key_store_is_owner_only_and_temporary(secured: Settings) -> None:
    with served_key_store(secured) as served:
        assert served is not None
        assert served.password not in repr(served)
        assert stat.S_IMODE(served.file.stat().st_mode) == 0o600
        with pytest.raises(ValueError, match="password"):
            pkcs12.load_pkcs12(served.file.read_bytes(), b"guessed")
        opened = pkcs12.load_pkcs12(served.file.read_bytes(), served.password.encode())
    assert not served.file.exists()
    pem = read_secret(secured, certificate_name(NAME))
    assert opened.cert is not None
    assert opened.cert.certificate == x509.load_pem_x509_certificate(pem.encode())


def test_clients_of_java_find_the_authority_by_the_address(secured: Settings) -> None:
    file = trust_store_file(secured)
    assert jdbc_url(secured).endswith(f"/;ssl=true;sslTrustStore={file}")
    trusted = pkcs12.load_pkcs12(file.read_bytes(), None).additional_certs
    authority = x509.load_pem_x509_certificate(read_secret(secured, AUTHORITY).encode())
    assert [one.certificate for one in trusted] == [authority]


def test_clients_get_the_certificates_between_the_server_s_and_the_authority_s(
    secured: Settings,
) -> None:
    pem = read_secret(secured, certificate_name(NAME)) + "\n" + read_secret(secured, AUTHORITY)
    opened = pkcs12.load_pkcs12(key_store(pem, "any"), b"any")
    authority = x509.load_pem_x509_certificate(read_secret(secured, AUTHORITY).encode())
    assert [one.certificate for one in opened.additional_certs] == [authority]


def test_it_is_not_reached_from_elsewhere_without_tls(secured: Settings) -> None:
    everywhere = EndpointSettings(host="0.0.0.0")  # noqa: S104 - it does not listen
    prepare_endpoint(secured.model_copy(update={"endpoint": everywhere}))
    plain = {"endpoint": everywhere, "security": SecuritySettings()}
    with pytest.raises(SettingError) as refused:
        prepare_endpoint(secured.model_copy(update=plain))
    assert "security.enabled" in str(refused.value)


def test_without_security_there_is_no_key(settings: Settings) -> None:
    prepare_endpoint(settings)
    with served_key_store(settings) as served:
        assert served is None
    assert jdbc_url(settings) == f"jdbc:hive2://127.0.0.1:{settings.ports.endpoint}"
