"""Writes the software bill of materials as CycloneDX files, and checks the licences.

``build/sbom/python.cdx.json`` lists the packages of uv.lock, ``build/sbom/<classpath>.cdx.json``
each classpath's jars with checksums and licences. ``--audit`` also queries the OSV database for
known vulnerabilities; it needs the internet.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build/sbom"
UV = ROOT / ".bootstrap/bin/uv"
PLUGIN = "org.cyclonedx:cyclonedx-maven-plugin:2.9.1:makeBom"
# A licence is allowed if one of its words begins with one of these.
ALLOWED = (
    *("apache", "mit", "bsd", "0bsd", "isc", "psf", "python software foundation", "mpl", "mozilla"),
    *("epl", "cddl", "cc0", "unlicense", "zlib", "go license", "public domain"),
    # Libraries whose licence does not extend to programs that load them.
    *("lgpl", "lesser general public", "classpath"),
)
# Components that are allowed for a specific reason.
REASONS = {
    "text-unidecode": "offers the Artistic License beside the GPL",
}


def main(arguments: list[str] | None = None) -> int:
    """Write the files and check them; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--audit", action="store_true", help="ask for known vulnerabilities too")
    options = parser.parse_args(arguments)
    FOLDER.mkdir(parents=True, exist_ok=True)
    refused = []
    for name, components in [("python", python_packages()), *jars()]:
        found = Counter(licence for _, licence in components)
        print(f"{name}: {len(components)} components; {summary(found)}")
        refused += [
            f"{name}: {who} ({licence})" for who, licence in components if not allowed(who, licence)
        ]
    print(f"Files: {FOLDER.relative_to(ROOT)}")
    for line in refused:
        print(f"LICENCE_NOT_ALLOWED: {line}", file=sys.stderr)
    if refused:
        print("  Hint: replace it, or add it to REASONS in scripts/sbom.py.", file=sys.stderr)
        return 1
    return audit() if options.audit else 0


def python_packages() -> list[tuple[str, str]]:
    """Write the file of Python's packages.

    Returns:
        Name and licence of each, from its metadata.
    """
    path = FOLDER / "python.cdx.json"
    command = [str(UV), "export", "--frozen", "--no-dev", "--all-extras", "--quiet"]
    features = ["--preview-features", "sbom-export", "--format", "cyclonedx1.5"]
    run([*command, *features, "--output-file", str(path)])
    described = json.loads(path.read_text())
    names = [component["name"] for component in described["components"]]
    return [(name, python_licence(name)) for name in names if installed(name)]


def installed(name: str) -> bool:
    """Whether a package is installed; uv.lock also names those of other systems."""
    try:
        metadata(name)
    except PackageNotFoundError:
        return False
    return True


def python_licence(name: str) -> str:
    """The licence in a package's metadata."""
    told = metadata(name)
    classifiers = [one for one in told.get_all("Classifier") or [] if one.startswith("License")]
    named = " OR ".join(one.rsplit(" :: ", 1)[-1] for one in classifiers)
    text = (told.get("License") or "").strip().partition("\n")[0]
    return told.get("License-Expression") or named or text or "none named"


def jars() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Write a file for each classpath; yields its name, and name and licence of each jar."""
    for pom in sorted(ROOT.glob("jars/*/pom.xml")):
        name = pom.parent.name
        options = ["-DoutputFormat=json", f"-DoutputName={name}.cdx"]
        options += [f"-DoutputDirectory={FOLDER}", "-Dstyle.color=never"]
        run(["mvn", "-q", "-B", "-C", "-f", str(pom), PLUGIN, *options])
        described = json.loads((FOLDER / f"{name}.cdx.json").read_text())
        yield name, [(one["name"], jar_licence(one)) for one in described["components"]]


def jar_licence(component: Mapping[str, Any]) -> str:
    """The alternative licences of a CycloneDX component, separated by OR."""
    offered = []
    for choice in component.get("licenses", ()):
        licence = choice.get("license", {})
        offered.append(choice.get("expression") or licence.get("id") or licence.get("name"))
    return " OR ".join(filter(None, offered)) or "none named"


def allowed(name: str, licence: str) -> bool:
    """Whether the product may ship a component."""
    return name in REASONS or fits(licence)


def fits(licence: str) -> bool:
    """Whether a licence, or an SPDX expression of several, is allowed.

    >>> fits("MIT AND (Apache-2.0 OR GPL-2.0)"), fits("MIT AND GPL-2.0")
    (True, False)
    """
    # AND binds more tightly than OR. Words of names are lower case: "Development and Distribution".
    if len(alternatives := sides(licence, "OR")) > 1:
        return any(map(fits, alternatives))
    if len(together := sides(licence, "AND")) > 1:
        return all(map(fits, together))
    if licence.startswith("(") and licence.endswith(")"):
        return fits(licence[1:-1])
    return any(re.search(rf"\b{word}", licence.lower()) for word in ALLOWED)


def sides(expression: str, operator: str) -> list[str]:
    """The operands of an operator outside of parentheses; the whole expression if there is none."""
    found: list[list[str]] = [[]]
    depth = 0
    for word in expression.split():
        depth += word.count("(") - word.count(")")
        if word == operator and depth == 0:
            found.append([])
        else:
            found[-1].append(word)
    return [" ".join(one) for one in found]


def summary(found: Counter[str]) -> str:
    """The most frequent licences, in one line."""
    most = ", ".join(f"{licence} {count}" for licence, count in found.most_common(4))
    return f"{most}, {len(found) - 4} others" if len(found) > 4 else most


def audit() -> int:
    """Check uv.lock and the jars against OSV; returns the exit status."""
    scanner = shutil.which("osv-scanner")
    if scanner is None:
        print(
            "AUDIT_TOOL_MISSING: osv-scanner is not on PATH, so the jars cannot be audited.",
            file=sys.stderr,
        )
        print(
            "  Hint: go install github.com/google/osv-scanner/v2/cmd/osv-scanner@v2",
            file=sys.stderr,
        )
        return 1
    files = [word for path in sorted(FOLDER.glob("*.cdx.json")) for word in ("-L", str(path))]
    return subprocess.run([scanner, "scan", "source", *files], cwd=ROOT, check=False).returncode


def run(command: list[str]) -> None:
    """Run a command; if it fails, the program ends with its output."""
    answer = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if answer.returncode != 0:
        print(answer.stdout[-4000:], answer.stderr[-4000:], file=sys.stderr)
        sys.exit(f"SBOM_NOT_WRITTEN: {command[0]} failed, see above.\n  Hint: run `make setup`.")


if __name__ == "__main__":
    sys.exit(main())
