from __future__ import annotations

import pytest

from spark_jobs.graph.dialect import dialect
from spark_jobs.graph.lexemes import LexicalError, check_quotes, without_comments


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ("a -- b\nc", "a     \nc"),
        ("a -- 'b\r\nc", "a" + 7 * " " + "\nc"),
        ("a /* b /* c */ d */ e", "a" + 19 * " " + "e"),
        ("a /* /*+ */ e", "a           e"),
        ("a /**/ b", "a      b"),
        ("a /*/ '*/ b", "a         b"),
        ("/*+ MERGE(`*/`, '*/') */ a", "                         a"),
        ("a /*\n*/ b", "a   \n   b"),
        ("'--' -- '", "'--'     "),
        ("'\\'--'", "'\\'--'"),
        ("r'\\'--'", "r'\\'   "),
        ("bar'\\'--'", "bar'\\'--'"),
        ("1e+5r'\\'--'", "1e+5r'\\'   "),
        ("`a``--b`", "`a``--b`"),
        ("a\u00a0b\tc", "a b c"),
        ("'\u017f' -- \u017f", "'\u017f'     "),
    ],
)
def test_comments_and_hints_become_spaces(written: str, left: str) -> None:
    assert without_comments(written) == left
    assert without_comments(left) == left


@pytest.mark.parametrize(
    ("written", "problem", "offset"),
    [
        ("SELECT 'a", "the ' is not closed", 7),
        ("SELECT `a", "the ` is not closed", 7),
        ("SELECT /* /* */ 1", "the /* is not closed", 7),
        ("SELECT /*+ A(b) 1", "the /* is not closed", 7),
        ("SELECT 1 */ 2", "a character is not expected", 9),
        ("SELECT /*+ /*+ */ 2", "a character is not expected", 11),
        ("SELECT \u017f", "a character is not expected", 7),
        ("SELECT \x00", "a character is not expected", 7),
        ("SELECT a FROM s3://b", "a path must not be quoted", 16),
    ],
)
def test_lexical_errors_have_an_offset(written: str, problem: str, offset: int) -> None:
    with pytest.raises(LexicalError) as refusal:
        without_comments(written)
    assert (refusal.value.problem, refusal.value.offset) == (problem, offset)


@pytest.mark.parametrize(
    "written",
    [
        "SELECT 'a''b', \"a\\\"b\", `a``b`, r'\\', x'1F', X'1F', b'01', n'x', 1L, 1.5BD, 1e-5",
        "SELECT a::INT, b[0], m['k'], x -> x + 1, a <=> b, a || b, *, :p, ? FROM t GROUP BY ALL",
    ],
)
def test_quotes_are_the_same_for_sqlglot(written: str) -> None:
    check_quotes(written, dialect().tokenize(written))


@pytest.mark.parametrize("written", ["SELECT 1e+5r'\\' , '", "SELECT 1 {# 2 #}"])
def test_text_that_sqlglot_tokenizes_differently_is_refused(written: str) -> None:
    with pytest.raises(LexicalError):
        check_quotes(written, dialect().tokenize(written))
