"""Which licences `make sbom` lets pass."""

from __future__ import annotations

import pytest

from tests.unit.test_suite import script

sbom = script("sbom")


@pytest.mark.parametrize(
    ("component", "licence"),
    [
        ({"licenses": [{"license": {"id": "Apache-2.0"}}]}, "Apache-2.0"),
        ({"licenses": [{"expression": "MIT OR GPL-3.0"}]}, "MIT OR GPL-3.0"),
        (
            {"licenses": [{"license": {"name": "EPL 2"}}, {"license": {"id": "GPL-2.0"}}]},
            "EPL 2 OR GPL-2.0",
        ),
        ({}, "none named"),
    ],
)
def test_licences_of_a_jar(component: dict[str, object], licence: str) -> None:
    assert sbom.jar_licence(component) == licence


@pytest.mark.parametrize(
    "licence",
    [
        *("Apache-2.0", "MIT License", "EPL-2.0 OR GPL-2.0"),
        *("GPL-3.0 OR MIT AND ISC", "(GPL-3.0 OR MIT) AND BSD-3-Clause", "(MIT)"),
        "BSD-3-Clause AND 0BSD AND MIT AND Zlib AND CC0-1.0",
        "GPL-2.0-only WITH Classpath-exception-2.0",
        "Common Development and Distribution License (CDDL) 1.0",
    ],
)
def test_allowed(licence: str) -> None:
    assert sbom.allowed("any", licence)


@pytest.mark.parametrize(
    "licence",
    [
        *("GPL-3.0-or-later", "AGPL-3.0", "none named", "Proprietary"),
        # Words that hold the letters of MIT and ISC.
        *("Permission for limited use", "See the disclaimer and miscellaneous terms"),
        # All of them apply, not the one that fits.
        *("Apache-2.0 AND GPL-3.0", "MIT AND (GPL-3.0 OR AGPL-3.0)", "AGPL-3.0 OR MIT AND GPL-3.0"),
        *("(Apache-2.0 AND GPL-3.0) OR Proprietary", "MIT AND"),
    ],
)
def test_refused(licence: str) -> None:
    assert not sbom.allowed("any", licence)


def test_each_python_package_that_is_installed_names_a_licence() -> None:
    assert sbom.python_licence("pyspark") == "Apache-2.0"
    assert not sbom.installed("no-such-package")
    assert all(sbom.installed(name) for name in sbom.REASONS)
