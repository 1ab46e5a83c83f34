"""What every error declares, and what its base makes of it."""

from __future__ import annotations

import ast
import copy
import importlib
import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cache
from inspect import isclass, signature
from pathlib import Path
from string import Formatter

import pytest

import spark_jobs
from spark_jobs.definitions.errors import MissingKeyError, UnexpectedValueError, UnknownKeyError
from spark_jobs.errors import LakehouseError, Location, ProblemsError, SettingError, did_you_mean
from spark_jobs.gold.base.errors import NotAnInputError, ViewUnknownError
from spark_jobs.graph.errors import CycleError
from spark_jobs.graph.reuse_errors import MacroArgumentsError
from spark_jobs.graph.semantic_errors import AliasColumnsError
from spark_jobs.silver.errors import SilverTableUnknownError, SourceUnknownError
from spark_jobs.stack.errors import KafkaJarsMissingError

PLACE = Location("sql/gold/a.sql", 3)
TEXTS = ("primary", "detail", "hint")
PARAMETERS_OF_BASE = {"location"}


def modules() -> Iterator[str]:
    """The modules of the package that define an error for a user."""
    root = Path(spark_jobs.__file__).parent
    for path in sorted(root.rglob("*.py")):
        text = path.read_text()
        if "condition" in text and any(
            isinstance(node, ast.ClassDef)
            and any(isinstance(line, ast.Assign) and names(line) for line in node.body)
            for node in ast.parse(text).body
        ):
            yield ".".join(path.relative_to(root.parent).with_suffix("").parts)


def names(line: ast.Assign) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "condition" for one in line.targets)


@cache
def declared() -> tuple[type[LakehouseError], ...]:
    return tuple(
        one
        for name in modules()
        for one in vars(importlib.import_module(name)).values()
        if isclass(one) and issubclass(one, LakehouseError) and one.__module__ == name
    )


def test_every_template_names_attributes_that_the_error_has():
    errors = declared()
    assert len(errors) > 150
    unknown = [
        f"{error.__name__}.{text}: {name}"
        for error in errors
        for text in TEXTS
        for _, name, _, _ in Formatter().parse(getattr(error, text, None) or "")
        if name is not None
        and (root := name.split(".")[0].split("[")[0]) not in parameters(error)
        and not hasattr(error, root)
    ]
    assert unknown == []


def test_every_error_with_parameters_has_a_text():
    without = [
        error.__name__
        for error in declared()
        if set(parameters(error)) - PARAMETERS_OF_BASE and not getattr(error, "primary", None)
    ]
    assert without == ["SubjectError"]


def test_every_misspelt_word_has_words_that_are_known():
    wrong = [
        error.__name__
        for error in declared()
        if error.misspelt and not ({"known"} <= parameters(error) and has(error, error.misspelt))
    ]
    assert wrong == []


def test_conditions_are_unique():
    conditions = Counter(
        vars(error)["condition"] for error in declared() if "condition" in vars(error)
    )
    assert [one for one, times in conditions.items() if times > 1] == []


def parameters(error: type[LakehouseError]) -> set[str]:
    return {one.name for one in fields(error)} if error is not LakehouseError else set()


def has(error: type[LakehouseError], name: str) -> bool:
    return name in parameters(error) or hasattr(error, name)


ERRORS = [
    UnknownKeyError('gold view "a"', "grian", ["grain", "owner"], location=PLACE),
    MissingKeyError('gold view "a"', "grain", location=PLACE),
    KafkaJarsMissingError(Path("/jars")),
    SettingError("ports.kafka", "is no port"),
    ProblemsError([SettingError("a", "is unknown"), CycleError(["gold.a"], location=PLACE)]),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.condition)
@pytest.mark.parametrize(
    "copied",
    [lambda one: pickle.loads(pickle.dumps(one)), copy.copy, copy.deepcopy],  # noqa: S301
)
def test_a_copied_error_has_the_same_text_and_attributes(error, copied):
    other = copied(error)
    assert type(other) is type(error)
    assert (str(other), other.as_dict()) == (str(error), error.as_dict())
    assert vars(other).keys() == vars(error).keys()
    assert repr(vars(other)) == repr(vars(error))


def test_a_similar_known_word_replaces_the_hint():
    near, far = (
        UnknownKeyError("a", key, ["grain", "owner"], location=PLACE) for key in ("grian", "x")
    )
    assert near.hint == 'Did you mean "grain"?'
    assert far.hint == "Known keys are grain, owner."


def test_one_of_a_kind_is_named_in_the_singular():
    one, two = (AliasColumnsError("a", n, 3 - n, location=PLACE) for n in (1, 2))
    assert one.primary == "a: an alias names 1 column, but its relation has 2 columns"
    assert two.primary == "a: an alias names 2 columns, but its relation has 1 column"
    macro = MacroArgumentsError("net", 1, 2, ["amount"], location=PLACE)
    assert macro.primary == "macro 'net' takes 1 argument, but got 2"
    assert macro.hint == "Call it as net(amount)."


def test_a_sequence_is_written_with_what_its_format_says():
    assert CycleError(["a", "b", "a"], location=PLACE).primary.endswith(": a -> b -> a")


def test_braces_in_what_is_given_stay():
    error = UnexpectedValueError("a", "{key}", "{0} {", "Write {this}.", location=PLACE)
    assert error.primary == 'a: "{key}" is not valid: {0} {'
    assert error.hint == "Write {this}."


def test_a_text_of_nothing_is_none():
    assert MissingKeyError("a", "b", location=PLACE).detail is None


def test_a_list_that_changes_later_leaves_the_error_as_it_is():
    path = ["a", "b"]
    error = CycleError(path, location=PLACE)
    path.clear()
    assert error.path == ("a", "b")


def test_the_location_is_a_required_argument():
    with pytest.raises(TypeError, match="location"):
        CycleError(["a"])


def test_a_text_given_by_callers_is_a_required_argument():
    assert (
        signature(UnexpectedValueError).parameters["hint"].default
        is signature(UnexpectedValueError).empty
    )


def test_an_error_of_a_further_class_is_a_dataclass_too():
    class LostError(LakehouseError):
        condition = "LOST"
        files: Sequence[str]
        primary = "lost {files}"

    assert LostError(["x", "y"]).render() == "lost x, y [LOST]"


@pytest.mark.parametrize(
    ("word", "known", "near"),
    [
        ("ORDERS", ["orders", "users"], "orders"),
        ("Silver.Orders", ["gold.spend", "silver.orders"], "silver.orders"),
        ("EVERY", ["Every", "every"], "Every"),
        ("größe", ["GRÖSSE"], "GRÖSSE"),
        ("ORDERS", ["payments"], None),
        ("", ["orders"], None),
    ],
)
def test_a_word_in_another_case_is_suggested(word: str, known: list[str], near: str | None) -> None:
    assert did_you_mean(word, known) == (near and f'Did you mean "{near}"?')


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        # No view is meant, however similar its name is.
        (
            ViewUnknownError("silver.orders", ["active_orders"]),
            "It is no gold view; `tidemark status` shows the streams of all tables.",
        ),
        (ViewUnknownError("silver_orders", []), "Declare it in sql/gold/silver_orders.sql."),
        (ViewUnknownError("b c", []), "Name a gold view; `tidemark graph` lists them."),
        (
            SilverTableUnknownError("gold.spend", ["spent"]),
            "Name a silver table; `tidemark graph` lists them.",
        ),
        (SilverTableUnknownError("users", []), "Declare it in sql/silver/users.sql."),
        (SourceUnknownError("rates", []), "No source has records."),
        (SourceUnknownError("rates", ["clicks", "users"]), "Sources are clicks, users."),
        (NotAnInputError("BRONZE.Rates", ["bronze.rates"]), 'Did you mean "bronze.rates"?'),
    ],
)
def test_a_hint_about_a_name_can_be_followed(error: LakehouseError, hint: str) -> None:
    assert error.hint == hint
