"""Runs Spark's Thrift server in this process; logins and statements are checked by functions here.

The Java part, ``Endpoint.java``, is compiled at the start by the compiler that Spark embeds for its
queries.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, MutableMapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from spark_jobs.settings import Settings
from spark_jobs.stack.endpoint_files import KeyStore, endpoint_files
from spark_jobs.storage.accounts import own_folder
from spark_jobs.storage.conf import session_conf
from spark_jobs.storage.guard import ONLY_DELTA
from spark_jobs.storage.rights import usual_rights

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

JAVA_SOURCE = Path(__file__).with_name("Endpoint.java")
JAVA_CLASS = "tidemark.Endpoint"
CLASSES = "classes"

# Whether a user with this password may log in.
Check = Callable[[str, str], bool]
# Gets a statement's properties, and adds "sql" and "policy", or "refusal".
Judge = Callable[[MutableMapping[str, str]], None]


def make_class_path(settings: Settings) -> None:
    """Create the directory for the classes: Java ignores it if it does not exist at the start."""
    with usual_rights() if settings.endpoint.account else nullcontext():
        (endpoint_files(settings) / CLASSES).mkdir(parents=True, exist_ok=True)


def thrift_conf(settings: Settings) -> dict[str, str]:
    """Settings of a session that serves SQL clients, in addition to those of every session.

    Call ``make_class_path`` before the session starts.

    Raises:
        JarsMissingError: Delta's jars are not in the directory that the settings name.
    """
    files = endpoint_files(settings)
    own = own_folder(files) if settings.endpoint.account else files
    shared = session_conf(settings)
    hive = {
        "server2.thrift.bind.host": settings.endpoint.host,
        "server2.thrift.port": str(settings.ports.endpoint),
        "server2.thrift.max.worker.threads": str(settings.endpoint.connections),
        "server2.authentication": "CUSTOM",
        # Queries run as the server's account.
        "server2.enable.doAs": "false",
        "security.authorization.manager": f"{JAVA_CLASS}$Listed",
        "server2.logging.operation.log.location": str(own / "logs"),
        "exec.scratchdir": str(own / "scratch"),
        "exec.local.scratchdir": str(own / "local"),
        "downloaded.resources.dir": str(own / "resources"),
    }
    return {
        **{f"spark.hadoop.hive.{key}": value for key, value in hive.items()},
        "spark.driver.memory": settings.endpoint.memory,
        "spark.driver.extraClassPath": f"{shared['spark.driver.extraClassPath']}:{files / CLASSES}",
        # A task that runs out of memory fails with its statement and frees its memory; the process
        # continues. ``stack.endpoint.Pulse`` ends a server that does not answer.
        "spark.executor.killOnFatalError.depth": "0",
        "spark.sql.thriftServer.interruptOnCancel": "true",
        # Send results in parts, so that they need not fit into memory.
        "spark.sql.thriftServer.incrementalCollect": "true",
        "spark.ui.enabled": "false",
        ONLY_DELTA: "true",
        **(of_another_account(own) if settings.endpoint.account else {}),
    }


def of_another_account(own: Path) -> dict[str, str]:
    """Further settings if the JVM runs as another account than this process.

    Args:
        own: directory that the account can write.
    """
    return {
        # Executors of a cluster would read with the permissions of the cluster's account.
        "spark.master": "local[*]",
        "spark.local.dir": str(own / "spark-local"),
        "spark.sql.warehouse.dir": str(own / "spark-warehouse"),
        # Makes PySpark pass rows over a socket and not in a file, which the account cannot read.
        "spark.io.encryption.enabled": "true",
    }


def start_server(
    spark: SparkSession,
    check: Check,
    judge: Judge,
    *,
    files: Path,
    key_store: KeyStore | None = None,
) -> None:
    """Accept clients; each gets a session that shares this session's catalog.

    Args:
        spark: a classic session with ``thrift_conf``; its own statements are not checked.
        check: called for each login.
        judge: called for each statement, from several threads; must not raise.
        files: directory from ``endpoint_files``.
        key_store: key store for TLS, needed until this returns; None: no TLS.
    """
    from pyspark.java_gateway import ensure_callback_server_started

    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - Spark has no public way into Java
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    local = Path(spark.conf.get("spark.hadoop.hive.exec.local.scratchdir") or files)
    local.mkdir(exist_ok=True)
    java = gateway.jvm
    java.java.lang.System.setProperty("derby.system.home", str(local.parent))
    with usual_rights():
        _compile(java, files / CLASSES)
    endpoint = java.java.lang.Class.forName(JAVA_CLASS).newInstance()
    tls = (str(key_store.file), key_store.password) if key_store else (None, None)
    endpoint.open(spark._jsparkSession, _Check(check), _Judge(judge), *tls)  # noqa: SLF001


def _compile(java: Any, folder: Path) -> None:
    """Compile the Java part into a directory."""
    compiler = java.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(java.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(JAVA_SOURCE.read_text("utf-8"))
    for name, code in compiler.getBytecodes().items():
        file = folder.joinpath(*name.split(".")).with_suffix(".class")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(code)


@dataclass
class JobLimit:
    """Stops statements whose jobs run too long together, also while a client fetches rows.

    A statement can have many jobs, one after the other: Spark collects each partition of its result
    by a job. All have the statement's id as their job group.

    Attributes:
        seconds: limit of the time in which a statement has a running job.
        used: that time by statement, or by job for a job of no statement.
        seen: when a statement had a running job last, on the clock of ``time.monotonic``.
    """

    spark: SparkSession
    seconds: float
    used: dict[str, float] = field(default_factory=dict)
    seen: dict[str, float] = field(default_factory=dict)
    looked_at: float = field(default_factory=time.monotonic)

    def enforce(self) -> None:
        """Stop statements beyond the limit; call about once a second."""
        now, spark = time.monotonic(), self.spark.sparkContext._jsc.sc()  # noqa: SLF001
        passed, self.looked_at = now - self.looked_at, now
        # Of a statement that has no job for so long, no client fetches rows any more.
        forgotten = [one for one, at in self.seen.items() if now - at > self.seconds + passed]
        for one in forgotten:
            del self.seen[one], self.used[one]
        for statement, job in _running_jobs(self.spark).items():
            self.seen[statement] = now
            self.used[statement] = self.used.get(statement, 0.0) + passed
            if self.used[statement] > self.seconds:
                reason = f"because a query may run for {self.seconds:g} seconds"
                logger.warning("statement stopped id=%s job=%s", statement, job)
                if statement.startswith(_ALONE):
                    spark.cancelJob(job, reason)
                else:
                    spark.cancelJobGroupAndFutureJobs(statement, reason)


_ALONE = "job "


def _running_jobs(spark: SparkSession) -> dict[str, int]:
    """One running job of each statement, by its job group; those of none by ``_ALONE`` and id."""
    from py4j.protocol import Py4JError

    context = spark.sparkContext
    # Spark's public trackers do not tell a job's group.
    store = context._jsc.sc().statusStore()  # noqa: SLF001
    found: dict[str, int] = {}
    for job in context.statusTracker().getActiveJobsIds():
        statement = f"{_ALONE}{job}"
        # The store may have forgotten a job that ended meanwhile.
        with suppress(Py4JError):
            group = store.job(job).jobGroup()
            if group.isDefined():
                statement = group.get()
        found[statement] = job
    return found


class _Check:
    """A check that Java can call."""

    def __init__(self, check: Check) -> None:
        self._check = check

    def test(self, user: str, password: str) -> bool:
        return self._check(user, password)

    class Java:
        implements: ClassVar = ["java.util.function.BiPredicate"]


class _Judge:
    """A judge that Java can call."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def accept(self, statement: Any) -> None:
        self._judge(statement)

    class Java:
        implements: ClassVar = ["java.util.function.Consumer"]
