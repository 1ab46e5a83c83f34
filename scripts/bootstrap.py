"""Sets up a machine: system packages, the Python environment and the jars.

It needs only Python, and ends in a fraction of a second if everything is installed. The argument
``cassandra`` adds the jars for a sink to a local Cassandra, ``s3`` those for a lake in an object
store, including a local server; ``walk`` adds a packet filter for faults of the network.
``lock-jars`` rewrites the jars' checksums after a change of a pom.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
UV_VERSION = "0.13.8"
GIB = 1024**3
# Of the whole machine; README.md says how much should be free.
MINIMUM_MEMORY_GIB = 6
MINIMUM_DISK_GIB = 5
MINIMUM_JAVA = 17
POSTGRES_PROGRAMS = "usr/lib/postgresql/*/bin/initdb"
CLASSPATHS = ("spark", "kafka")
ON_DEMAND = {"cassandra": ("cassandra",), "s3": ("s3", "s3proxy")}
LOCK_JARS = "lock-jars"
WALK = "walk"
# Java sources, and the jars that are built from them.
COMPILED = {
    ROOT / "spark_jobs/storage/ConditionalLogStore.java": ROOT
    / "jars/s3/target/dependency/tidemark-log-store.jar",
    ROOT / "spark_jobs/stack/ObjectStore.java": ROOT
    / "jars/s3proxy/target/dependency/tidemark-object-store.jar",
}
# What runs while the archive is written, and jars of the class path that are built from source.
ARCHIVED = (
    ROOT / "spark_jobs/storage/class_archive.py",
    *sorted((ROOT / "spark_jobs/storage").glob("*.java")),
)
MAVEN_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies"
UV = ROOT / ".bootstrap/bin/uv"


class SetupError(Exception):
    """A problem that setup cannot fix: what is wrong, and the remedy."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"setup: {problem}\n  Hint: {remedy}")


def main() -> int:
    """Install what is missing; returns the exit status."""
    began = time.monotonic()
    try:
        done = [*machine(), *java(), *packages(), *environment(), *jars(), *compiled(), *classes()]
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    if done:
        say(f"ready after {time.monotonic() - began:.0f} s")
    return 0


def say(text: str) -> None:
    """Print the current step."""
    print(f"setup: {text}", flush=True)


def machine() -> list[str]:
    """Check memory and disk."""
    memory = total_memory_gib()
    if memory is not None and memory < MINIMUM_MEMORY_GIB:
        raise SetupError(
            f"this machine has {memory:.1f} GiB of memory, the stack needs {MINIMUM_MEMORY_GIB}",
            "use a larger machine, or give the container more memory",
        )
    free = shutil.disk_usage(ROOT).free / GIB
    needed = 1 if (ROOT / ".venv/.setup-stamp").exists() else MINIMUM_DISK_GIB
    if free < needed:
        raise SetupError(
            f"{free:.1f} GiB are free below {ROOT}, setup needs {needed}",
            "free some space, or clone the repository on a larger disk",
        )
    return []


def total_memory_gib() -> float | None:
    """The memory of the machine or the container; None if the system does not show it."""
    limits = []
    for path, pattern in (
        ("/proc/meminfo", r"MemTotal:\s+(\d+) kB"),
        ("/sys/fs/cgroup/memory.max", r"^(\d+)$"),
    ):
        try:
            match = re.search(pattern, Path(path).read_text())
        except OSError:
            continue
        if match:
            limits.append(int(match[1]) * (1024 if "kB" in pattern else 1))
    return min(limits) / GIB if limits else None


def java() -> list[str]:
    """Check that Java is installed and new enough."""
    remedy = "install Java 17 (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
    program = java_program()
    if program is None:
        home = os.environ.get("JAVA_HOME")
        where = f"in JAVA_HOME ({home})" if home else "on PATH"
        raise SetupError(f"there is no Java {where}", remedy)
    match = re.search(r'version "(?:1\.)?(\d+)', java_version(program))
    if match is None or int(match[1]) < MINIMUM_JAVA:
        seen = match[1] if match else "of an unknown version"
        raise SetupError(f"Java {MINIMUM_JAVA} or later is needed, {program} is {seen}", remedy)
    return []


def java_program() -> str | None:
    """The ``java`` of JAVA_HOME, or else of PATH; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(str(Path(home) / "bin/java") if home else "java")


@cache
def java_version(program: str) -> str:
    """What ``java -version`` prints."""
    answer = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    return answer.stderr


def packages() -> list[str]:
    """Install the system's packages that are missing."""
    missing = list(missing_packages())
    if missing:
        install(missing)
        if left := list(missing_packages()):
            remedy = f"install them by hand, as root: apt-get install {' '.join(left)}"
            raise SetupError(f"still missing after the installation: {', '.join(left)}", remedy)
    return missing


def missing_packages() -> Iterator[str]:
    """Names of the missing Debian packages."""
    if not any(Path("/").glob(POSTGRES_PROGRAMS)) and not shutil.which("initdb"):
        yield "postgresql"
    if not shutil.which("redis-server"):
        yield "redis-server"
    if any(map(stale_jars, classpaths())) and not shutil.which("mvn"):
        yield "maven"
    # Only root may filter packets.
    if WALK in sys.argv[1:] and os.geteuid() == 0 and not shutil.which("nft"):
        yield "nftables"
    # For the library that sets the clock of a test's stack.
    if WALK in sys.argv[1:] and not shutil.which("cc"):
        yield "gcc"
        yield "libc6-dev"
    if not UV.exists() and find_spec("ensurepip") is None:
        yield f"python3.{sys.version_info.minor}-venv"


def install(names: list[str]) -> None:
    """Install Debian packages, as root or by sudo."""
    listed = ", ".join(names)
    command = f"apt-get install {' '.join(names)}"
    if not shutil.which("apt-get"):
        raise SetupError(f"missing: {listed}", "install them with this system's package manager")
    prefix = privileges()
    if prefix is None:
        raise SetupError(f"missing: {listed}", f"run as root: {command}")
    say(f"installing {listed}")
    if "postgresql" in names:
        say("(Debian starts a PostgreSQL of its own on port 5432, which the stack does not use)")
    if "redis-server" in names:
        say("(Debian starts a Redis of its own on port 6379, which the stack does not use)")
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *names]):
        if run([*apt, *arguments]) != 0:
            raise SetupError(f"`apt-get {arguments[0]}` failed", f"run as root: {command}")


def privileges() -> list[str] | None:
    """The prefix of a command that runs as root; None if that requires a password."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo"):
        answer = subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False)
        if answer.returncode == 0:
            return ["sudo", "-n"]
    return None


def environment() -> list[str]:
    """Sync the Python environment with uv.lock, by a pinned version of uv."""
    stamp = ROOT / ".venv/.setup-stamp"
    wanted = digest(ROOT / "uv.lock", ROOT / "pyproject.toml")
    if read(stamp) == wanted and (ROOT / ".venv/bin/python").exists():
        return []
    if read(UV.parent.parent / ".setup-stamp") != UV_VERSION:
        say(f"installing uv {UV_VERSION}")
        if run([sys.executable, "-m", "venv", "--clear", str(UV.parent.parent)]) != 0:
            raise SetupError("cannot make .bootstrap", f"check that {sys.executable} has venv")
        pip = [str(UV.parent / "python"), "-m", "pip", "install", "--quiet", f"uv=={UV_VERSION}"]
        if run(pip) != 0:
            raise SetupError("pip cannot install uv", "check the network and pip's index setting")
        (UV.parent.parent / ".setup-stamp").write_text(UV_VERSION)
    say("installing the Python environment that uv.lock describes")
    sync = [str(UV), "sync", "--frozen", "--all-extras", "--quiet", "--python", sys.executable]
    if run(sync, cwd=ROOT, env={**os.environ, "UV_PYTHON_DOWNLOADS": "never"}) != 0:
        raise SetupError("uv cannot install the environment", "see above; then run it again")
    stamp.write_text(wanted)
    return [".venv"]


def jars() -> list[str]:
    """Fetch each classpath whose pom changed by Maven, and check it against recorded checksums."""
    done = []
    for name in filter(stale_jars, classpaths()):
        say(f"fetching the jars of {name}")
        target = ROOT / "jars" / name / "target"
        fresh = target / "dependency.new"
        shutil.rmtree(fresh, ignore_errors=True)
        command = [
            *("mvn", "-q", "-B", "-C", "-Dstyle.color=never", "-f", str(pom(name)), MAVEN_GOAL),
            *("-DincludeScope=runtime", f"-DoutputDirectory={fresh}"),
        ]
        # Maven prints escape codes even without messages.
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            print(answer.stdout[-4000:], answer.stderr[-4000:], file=sys.stderr)
            raise SetupError(f"Maven cannot fetch the jars of {name}", "see above; run it again")
        if LOCK_JARS in sys.argv[1:]:
            sums_file(name).write_text(sums(fresh))
        check_sums(name, fresh)
        shutil.rmtree(target / "dependency", ignore_errors=True)
        fresh.rename(target / "dependency")
        (target / "setup-stamp").write_text(digest(pom(name)))
        done.append(name)
    return done


def check_sums(name: str, folder: Path) -> None:
    """Check jars against ``jars/<name>/SHA256SUMS``."""
    wanted, found = set((read(sums_file(name)) or "").split("\n")), set(sums(folder).split("\n"))
    if wanted == found:
        return
    differ = sorted({line.partition("  ")[2] for line in wanted ^ found})
    named = ", ".join(differ[:5]) + (f" and {len(differ) - 5} more" if len(differ) > 5 else "")
    raise SetupError(
        f"JAR_CHECKSUM: jars of {name} differ from jars/{name}/SHA256SUMS: {named}",
        "if the pom was changed, run `make lock-jars` and review the difference; otherwise "
        "the registry serves other files than before: do not use them",
    )


def sums(folder: Path) -> str:
    """The jars of a folder with their checksums, in the format of sha256sum."""
    paths = sorted(folder.glob("*.jar"))
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in paths
    )


def sums_file(name: str) -> Path:
    """The file with a classpath's checksums."""
    return ROOT / "jars" / name / "SHA256SUMS"


def classpaths() -> tuple[str, ...]:
    """The classpaths that the stack needs, and those that were requested."""
    if LOCK_JARS in sys.argv[1:]:
        return (*CLASSPATHS, *(name for names in ON_DEMAND.values() for name in names))
    asked_for = (name for word in sys.argv[1:] for name in ON_DEMAND.get(word, ()))
    return (*CLASSPATHS, *asked_for)


def compiled() -> list[str]:
    """Compile the project's Java sources for S3, if they changed."""
    if "s3" not in classpaths():
        return []
    stamp = ROOT / "jars/s3/target/compiled-stamp"
    wanted = digest(*COMPILED, *filter(Path.exists, COMPILED.values()))
    if read(stamp) == wanted:
        return []
    say("compiling what is ours in Java")
    compiler = [str(ROOT / ".venv/bin/python"), "-m", "spark_jobs.stack.compile_java"]
    if run(compiler, cwd=ROOT) != 0:
        raise SetupError("Java sources do not compile", "see above; then run it again")
    stamp.write_text(digest(*COMPILED, *COMPILED.values()))
    return ["compiled"]


def classes() -> list[str]:
    """Write the archive of Spark's classes, from which drivers start with a third less CPU."""
    target = ROOT / "jars/spark/target"
    stamp = target / "classes-stamp"
    wanted = digest(ROOT / "uv.lock", sums_file("spark"), *ARCHIVED) + java_version(
        java_program() or "java"
    )
    if read(stamp) == wanted:
        return []
    say("writing the archive of Spark's classes")
    command = [str(ROOT / ".venv/bin/python"), "-m", "spark_jobs.storage.class_archive"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        # Everything works without it.
        (target / "classes.jsa").unlink(missing_ok=True)
        say("there is no archive, so Spark starts more slowly; the reason:")
        print(answer.stderr[-2000:], file=sys.stderr)
    stamp.write_text(wanted)
    return ["classes"]


def stale_jars(name: str) -> bool:
    """Whether a classpath differs from its pom, or is to be locked."""
    target = ROOT / "jars" / name / "target"
    if LOCK_JARS in sys.argv[1:]:
        return True
    return read(target / "setup-stamp") != digest(pom(name)) or not (target / "dependency").exists()


def pom(name: str) -> Path:
    """A classpath's pom."""
    return ROOT / "jars" / name / "pom.xml"


def digest(*paths: Path) -> str:
    """A value that changes with the files."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()


def read(path: Path) -> str | None:
    """A file's text; None if it does not exist."""
    return path.read_text() if path.exists() else None


def run(command: list[str], **options: Any) -> int:
    """Run a command whose output goes to the terminal; returns its status."""
    return subprocess.run(command, check=False, **options).returncode


if __name__ == "__main__":
    sys.exit(main())
