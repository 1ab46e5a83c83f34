"""Which accounts the SQL endpoint may have, and what they must be able to reach."""

from __future__ import annotations

import os
import pwd
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_jobs.errors import SettingError
from spark_jobs.serving.sql.thrift import thrift_conf
from spark_jobs.settings import Settings, load_settings
from spark_jobs.stack import endpoint_account as module
from spark_jobs.stack.endpoint_account import check_endpoint_account, prepare_account
from spark_jobs.stack.endpoint_files import endpoint_files
from spark_jobs.storage.accounts import may_change_accounts, own_folder

ACCOUNT = "nobody"
CAPABLE = "Name:\tpython\nCapEff:\t00000000000000c3\n"


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that every account can go through; Pytest's own are closed."""
    with tempfile.TemporaryDirectory(prefix="tidemark-", dir="/tmp") as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture(autouse=True)
def capable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "may_change_accounts", lambda: True)


def settings_of(folder: Path, account: str = ACCOUNT, **more: object) -> Settings:
    return load_settings(folder, state_dir=folder / "state", endpoint={"account": account}, **more)


def refusal(settings: Settings) -> str:
    with pytest.raises(SettingError) as refused:
        check_endpoint_account(settings)
    assert refused.value.key == "endpoint.account"
    return refused.value.problem


def test_without_the_setting_no_account_is_checked(tmp_path: Path) -> None:
    check_endpoint_account(settings_of(tmp_path, ""))


def test_an_account_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "no account 'analysts'" in refusal(settings_of(tmp_path, "analysts"))


def test_an_account_that_reads_more_than_gold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "owns nothing" in refusal(settings_of(tmp_path, pwd.getpwuid(0).pw_name))
    monkeypatch.setattr(os, "geteuid", lambda: pwd.getpwnam(ACCOUNT).pw_uid)
    assert "owns nothing" in refusal(settings_of(tmp_path))


def test_an_account_of_the_stack_s_group_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getgroups", lambda: [pwd.getpwnam(ACCOUNT).pw_gid])
    assert "may read the lake" in refusal(settings_of(tmp_path))


def test_a_lake_in_an_object_store_is_refused(tmp_path: Path) -> None:
    assert "whose key" in refusal(settings_of(tmp_path, lake_root="s3a://bucket/lake"))


def test_starting_without_root_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "may_change_accounts", lambda: False)
    assert "start the stack as root" in refusal(settings_of(tmp_path))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (CAPABLE, True),
        # Root in a container that may do nothing: one capability less each.
        (CAPABLE.replace("c3", "c2"), False),
        (CAPABLE.replace("c3", "c1"), False),
        (CAPABLE.replace("c3", "83"), False),
        (CAPABLE.replace("c3", "43"), False),
    ],
)
def test_capabilities_decide_who_may_change_accounts(
    tmp_path: Path, status: str, expected: bool
) -> None:
    file = tmp_path / "status"
    file.write_text(status)
    assert may_change_accounts(file) is expected


def test_a_folder_that_the_account_may_not_enter_is_named(reachable: Path) -> None:
    settings = settings_of(reachable)
    check_endpoint_account(settings)
    reachable.chmod(0o700)
    problem = refusal(settings)
    assert f"may not access {str(reachable)!r}" in problem


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_its_folder_is_its_own_and_new_each_time(reachable: Path) -> None:
    settings = settings_of(reachable)
    account, files = prepare_account(settings), endpoint_files(settings)
    own = own_folder(files)
    assert stat.S_IMODE(files.stat().st_mode) == 0o711
    assert (own.stat().st_uid, stat.S_IMODE(own.stat().st_mode)) == (account.uid, 0o700)
    target = reachable / "of the stack"
    target.mkdir()
    # What the account may leave there must not lead the next start elsewhere.
    (own / "local").rmdir()
    (own / "local").symlink_to(target)
    prepare_account(settings)
    assert target.stat().st_uid == 0
    assert not (own / "local").is_symlink()
    assert (own / "local").stat().st_uid == account.uid


def test_spark_writes_there_and_computes_in_its_own_process(reachable: Path) -> None:
    settings = settings_of(reachable, spark={"master": "spark://elsewhere:7077"})
    conf = thrift_conf(settings)
    own = str(own_folder(endpoint_files(settings)))
    assert conf["spark.master"] == "local[*]"
    inside = [key for key, value in conf.items() if str(settings.state) in value]
    written = [key for key in inside if key != "spark.driver.extraClassPath"]
    assert len(written) == 6
    assert all(conf[key].startswith(own) for key in written)
