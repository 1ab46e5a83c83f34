"""Addresses of Cassandra; the server of TLS is a real one."""

from __future__ import annotations

import pytest
from cassandra.cluster import NoHostAvailable
from cryptography.hazmat.primitives.serialization import Encoding

from spark_jobs.access.cassandra import cassandra_cluster
from spark_jobs.stack.certificates import KAFKA, new_authority, signed
from tests.unit.access.test_kafka import tls_server


def refused(address: str) -> Exception:
    with cassandra_cluster(address) as cluster, pytest.raises(NoHostAvailable) as caught:
        cluster.connect()
    return next(iter(caught.value.errors.values()))


def test_an_address_names_hosts_a_user_and_a_password() -> None:
    with cassandra_cluster("cassandra://ann:a%2Fb@127.0.0.1:19042,127.0.0.2:19042") as cluster:
        assert cluster.contact_points == ["127.0.0.1", "127.0.0.2"]
        assert cluster.port == 19042
        assert (cluster.auth_provider.username, cluster.auth_provider.password) == ("ann", "a/b")
    with cassandra_cluster("cassandra://127.0.0.1") as cluster:
        assert (cluster.port, cluster.auth_provider, cluster.ssl_context) == (9042, None, None)


def test_a_server_must_be_of_an_authority_that_is_trusted(tmp_path, monkeypatch) -> None:
    authority = new_authority()
    pem = authority[1].public_bytes(Encoding.PEM).decode()
    (tmp_path / "ca.pem").write_text(pem)
    with tls_server(tmp_path, signed(KAFKA, *authority, days=9)) as port:
        assert "CERTIFICATE_VERIFY_FAILED" in str(refused(f"cassandras://127.0.0.1:{port}"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        # It hangs up once it is greeted.
        assert "SSL" not in str(refused(f"cassandras://127.0.0.1:{port}"))
