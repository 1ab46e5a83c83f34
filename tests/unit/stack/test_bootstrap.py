"""What `make setup` says on a machine that lacks something."""

from __future__ import annotations

import importlib.util
import subprocess

import pytest

from spark_jobs.sections import LocalSettings
from spark_jobs.settings import REPOSITORY


@pytest.fixture
def bootstrap():
    spec = importlib.util.spec_from_file_location(
        "bootstrap", REPOSITORY / "scripts" / "bootstrap.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_python_that_is_new_enough(tmp_path):
    for name in ("python3", "python3.11", "python3.12", "python3.13"):
        fake = tmp_path / name
        fake.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.2"\nexit 1\n')
        fake.chmod(0o755)
    answer = subprocess.run(
        ["/bin/sh", str(REPOSITORY / "scripts" / "bootstrap.sh")],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    assert "found Python 3.9.2" in answer.stderr
    assert "Hint:" in answer.stderr


def test_no_java(bootstrap, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(bootstrap.SetupError, match="no Java in JAVA_HOME"):
        bootstrap.java()


def test_java_that_is_too_old(bootstrap, monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/java"
    program.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(bootstrap.SetupError, match=r"Java 17 or later is needed, .* is 11"):
        bootstrap.java()


def test_too_little_memory(bootstrap, monkeypatch):
    monkeypatch.setattr(bootstrap, "total_memory_gib", lambda: 2.0)
    with pytest.raises(bootstrap.SetupError, match=r"2\.0 GiB of memory"):
        bootstrap.machine()


def test_too_little_disk(bootstrap, monkeypatch):
    monkeypatch.setattr(bootstrap, "MINIMUM_DISK_GIB", 10**6)
    monkeypatch.setattr(bootstrap, "ROOT", REPOSITORY / "docs")
    with pytest.raises(bootstrap.SetupError, match="setup needs 1000000"):
        bootstrap.machine()


def test_without_root_the_missing_packages_are_listed(bootstrap, monkeypatch):
    monkeypatch.setattr(bootstrap, "missing_packages", lambda: iter(["postgresql", "maven"]))
    monkeypatch.setattr(bootstrap, "privileges", lambda: None)
    monkeypatch.setattr(bootstrap.shutil, "which", lambda _: "/usr/bin/apt-get")
    with pytest.raises(bootstrap.SetupError) as caught:
        bootstrap.packages()
    assert "apt-get install postgresql maven" in str(caught.value)


def test_a_changed_pom_makes_its_jars_stale(bootstrap, monkeypatch, tmp_path):
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    target = tmp_path / "jars/spark/target"
    (target / "dependency").mkdir(parents=True)
    bootstrap.pom("spark").write_text("<project/>")
    assert bootstrap.stale_jars("spark")
    (target / "setup-stamp").write_text(bootstrap.digest(bootstrap.pom("spark")))
    assert not bootstrap.stale_jars("spark")
    bootstrap.pom("spark").write_text("<project></project>")
    assert bootstrap.stale_jars("spark")


def test_jars_other_than_recorded_are_refused(bootstrap, monkeypatch, tmp_path):
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    fresh = tmp_path / "jars/spark/target/dependency.new"
    fresh.mkdir(parents=True)
    (fresh / "delta.jar").write_bytes(b"as released")
    bootstrap.sums_file("spark").write_text(bootstrap.sums(fresh))
    bootstrap.check_sums("spark", fresh)
    (fresh / "delta.jar").write_bytes(b"changed on the way")
    (fresh / "added.jar").write_bytes(b"")
    with pytest.raises(bootstrap.SetupError, match=r"JAR_CHECKSUM.*: added\.jar, delta\.jar"):
        bootstrap.check_sums("spark", fresh)


def test_recorded_sums_are_those_of_the_jars_here(bootstrap):
    for name in bootstrap.CLASSPATHS:
        found = bootstrap.sums(REPOSITORY / "jars" / name / "target/dependency").splitlines()
        # What is compiled here lies beside them.
        fetched = [line for line in found if "  tidemark-" not in line]
        assert bootstrap.sums_file(name).read_text().splitlines() == fetched


def test_the_readme_says_how_much_memory_is_refused(bootstrap):
    """Three limits for three moments: the machine, the start, and the work."""
    text = " ".join((REPOSITORY / "README.md").read_text(encoding="utf-8").split())
    least = LocalSettings().free_memory_gib
    assert f"less than {bootstrap.MINIMUM_MEMORY_GIB} GiB in all" in text
    assert f"less than {least:.0f} GiB are free when it starts (`local.free_memory_gib`)" in text
    assert f"and {bootstrap.MINIMUM_DISK_GIB} GiB of free disk" in text
