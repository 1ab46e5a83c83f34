"""Resolves the table and type of each column, and reports names that do not resolve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import TypeAnnotator
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.qualify_tables import qualify_tables
from sqlglot.optimizer.scope import Scope, traverse_scope
from sqlglot.schema import MappingSchema

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.alias_checks import alias_uses, misplaced_aliases
from spark_jobs.graph.dialect import dialect
from spark_jobs.graph.errors import (
    AmbiguousColumnError,
    SqlSyntaxError,
    UnknownColumnError,
    UnknownRelationError,
)
from spark_jobs.graph.functions import GENERATORS, called_name
from spark_jobs.graph.hidden_columns import hidden_columns
from spark_jobs.graph.inference import common_type, spark_type
from spark_jobs.graph.joined_columns import contains, correct_joined_columns, note_joins_by_name
from spark_jobs.graph.layer_names import drop_layers, unknown_layers
from spark_jobs.graph.named_windows import with_windows_in_place
from spark_jobs.graph.output_names import with_named_outputs
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.pivots import without_pivots
from spark_jobs.graph.place_checks import (
    position_of_star,
    with_bare_positions,
    wrong_position,
)
from spark_jobs.graph.qualify_outputs import ambiguous_outputs, with_outputs_in_place
from spark_jobs.graph.renamed_columns import with_renaming_apart, wrong_names
from spark_jobs.graph.semantics import check_semantics
from spark_jobs.graph.sql import relations_of
from spark_jobs.graph.struct_stars import with_fields, with_named_fields
from spark_jobs.names import TableName

# Spark types by column, for each table; tables with unknown columns are missing.
Schemas = Mapping[TableName, Mapping[str, str]]

_NO_LAYER = "no_layer"
# Key of the metadata of a generator whose outputs have no names but those that its types give them.
UNNAMED = "unnamed"

# Grouping by one of these functions adds a column of its name to the scope.
_GROUPING_COLUMNS = frozenset({"window", "session_window"})


@dataclass(frozen=True)
class Resolved:
    """The qualified tree, and the problems found."""

    tree: exp.Query
    problems: tuple[LakehouseError, ...]


class _Annotator(TypeAnnotator):
    """Widens the types of a union's columns as Spark does."""

    _of_union = False

    def _annotate_set_operation(self, expression: exp.SetOperation) -> None:
        self._of_union = True
        super()._annotate_set_operation(expression)
        self._of_union = False

    def _maybe_coerce(self, type1: Any, type2: Any) -> Any:
        if self._of_union:
            return common_type({exp.DataType.build(one) for one in (type1, type2)})
        return super()._maybe_coerce(type1, type2)


def resolve(tree: exp.Query, schemas: Schemas, source: SqlText, subject: str) -> Resolved:
    """Qualify and type a copy of the tree.

    Args:
        tree: the parsed SELECT.
        schemas: columns of the tables.
        source: its text, for locations.
        subject: name of the declared table in messages.
    """
    reader = dialect()
    schema = _schema(schemas, tree)
    try:
        written = without_pivots(tree, lambda query: _outputs_of(query, schemas, source, subject))
        prepared = with_fields(_prepared(written), lambda table: _columns(table, schemas))
        uses = alias_uses(prepared, source)
        found_before = [
            *ambiguous_outputs(prepared, source, subject),
            *unknown_layers(prepared, schemas, source, subject),
        ]
        qualified = qualify(
            with_outputs_in_place(prepared),
            dialect=reader,
            schema=schema,
            # Otherwise a table without a layer would be searched in every layer.
            db=_NO_LAYER,
            allow_partial_qualification=True,
            validate_qualify_columns=False,
            quote_identifiers=False,
        )
        correct_joined_columns(qualified)
        _order_by_outputs(qualified)
        problems = list(_unresolved(qualified, schema, source, subject))
        problems += hidden_columns(qualified, lambda one: _own(one, schema), source, subject)
        problems += wrong_names(qualified, source, subject)
        problems += [*misplaced_aliases(uses, qualified, subject), *found_before]
        typed = _Annotator(schema=schema).annotate(qualified)
    except SqlglotError as error:
        return Resolved(tree, (_refused(error, tree, source, subject),))
    except AssertionError:
        # By sqlglot, which expects a column at a position: a star of a function stays a star.
        if (wrong := position_of_star(tree, source, subject)) is None:
            raise
        return Resolved(tree, (wrong,))
    if not problems:
        problems += check_semantics(typed, source, subject)
    return Resolved(typed, tuple(problems))


def _outputs_of(
    query: exp.Query, schemas: Schemas, source: SqlText, subject: str
) -> dict[str, str] | None:
    """The columns of a query with their types, "" if unknown; None if it has problems."""
    found = resolve(query, schemas, source, subject)
    columns = {one.alias_or_name: spark_type(one, dialect()) for one in found.tree.selects}
    whole = len(columns) == len(found.tree.selects) and "*" not in columns
    return columns if whole and not found.problems else None


def _prepared(tree: exp.Query) -> exp.Query:
    """A copy for ``qualify``, which keeps the names of fields as written: Spark's JSON has them."""
    copy = with_windows_in_place(tree.copy())
    note_joins_by_name(with_bare_positions(with_renaming_apart(copy)))
    drop_layers(copy)
    with_named_fields(copy)
    with_named_outputs(copy)
    for select in copy.find_all(exp.Select):
        for one in select.expressions:
            if called_name(one) in GENERATORS:
                one.meta[UNNAMED] = True
    for struct in copy.find_all(exp.Struct):
        for field in struct.expressions:
            if isinstance(field, exp.PropertyEQ):
                field.this.meta["case_sensitive"] = True
    return copy


def _order_by_outputs(tree: exp.Query) -> None:
    """Order SELECT DISTINCT by its outputs: Spark knows no relation behind their aliases."""
    for select in tree.find_all(exp.Select):
        order = select.args.get("order")
        if order is None or not select.args.get("distinct"):
            continue
        outputs = {
            one.this: one.args["alias"] for one in select.expressions if isinstance(one, exp.Alias)
        }
        for column in [*order.find_all(exp.Column)]:
            if column.parent_select is select and column in outputs:
                column.replace(exp.Column(this=outputs[column].copy()))


def unresolved(
    tree: exp.Query, schemas: Schemas, source: SqlText, subject: str
) -> tuple[LakehouseError, ...]:
    """The names that do not resolve in a query over tables that are not all known.

    Stars and positions cannot be expanded then, and an unqualified column may belong to an unknown
    table. So only definite problems are reported.
    """
    schema = _schema(schemas, tree)
    try:
        named = qualify_tables(
            normalize_identifiers(with_renaming_apart(tree.copy()), dialect=dialect()),
            db=_NO_LAYER,
            dialect=dialect(),
        )
        problems = list(_unresolved(named, schema, source, subject))
    except SqlglotError as error:
        return (_refused(error, tree, source, subject),)
    # USING is not expanded either.
    return tuple(one for one in problems if not isinstance(one, AmbiguousColumnError))


def _columns(table: exp.Table, schemas: Schemas) -> dict[str, str] | None:
    """The columns of a declared table; None: it is another one, or they are not known."""
    named = (table.db.lower(), table.name.lower())
    for one, columns in schemas.items():
        if (one.layer.value, one.name) == named:
            return {name.lower(): kind for name, kind in columns.items()}
    return None


def _schema(schemas: Schemas, tree: exp.Query) -> MappingSchema:
    """The columns of the tables that a query names."""
    schema = MappingSchema(dialect=dialect())
    named = {(node.db.lower(), node.name.lower()) for node in tree.find_all(exp.Table)}
    for table, columns in schemas.items():
        if (table.layer.value, table.name) not in named:
            continue
        schema.add_table(
            exp.table_(table.name, db=table.layer),
            # sqlglot lowers the names of fields in a text.
            {name: _data_type(kind or "unknown") for name, kind in columns.items()},
        )
    return schema


@lru_cache(maxsize=1024)
def _data_type(kind: str) -> exp.DataType:
    return exp.DataType.build(kind, dialect=dialect())


def _refused(error: SqlglotError, tree: exp.Query, source: SqlText, subject: str) -> LakehouseError:
    message = str(error).splitlines()[0]
    name = message.rpartition(": ")[2].strip("'\"")
    if (wrong := wrong_position(tree, name, source, subject)) is not None:
        return wrong
    for node in tree.find_all(exp.Identifier):
        if node.name.lower() == name.lower() and node.meta:
            return UnknownColumnError(subject, node.name, (), location=source.of(node))
    text = message[:1].lower() + message[1:]
    return SqlSyntaxError(text, location=source.first())


def _unresolved(
    tree: exp.Query, schema: MappingSchema, source: SqlText, subject: str
) -> Iterator[LakehouseError]:
    seen: set[object] = set()
    for scope in traverse_scope(tree):
        for column in scope.columns:
            place = (column.this.meta.get("start"), column.sql())
            if place in seen or isinstance(column.this, exp.Star):
                continue
            problem = _check_column(column, scope, schema, source, subject)
            if problem:
                seen.add(place)
                yield problem


def _check_column(
    column: exp.Column, scope: Scope, schema: MappingSchema, source: SqlText, subject: str
) -> LakehouseError | None:
    if _of_grouping_function(column, scope) or _pivots(scope):
        return None
    reach = _reach(column, scope, schema)
    name = column.name
    written = _written(column.this, source)
    # A table that was not written is one of those whose columns are not in reach here.
    if column.table and not (column.table not in reach and _is_added(column)):
        if column.table not in reach:
            return UnknownRelationError(
                subject,
                column.table,
                written,
                sorted(reach),
                location=source.of(column),
            )
        known = reach[column.table]
        if known is None or name in known:
            return None
        place = source.of(column.this)
        return UnknownColumnError(subject, written, known, table=column.table, location=place)
    holders = [
        relation for relation, columns in _own(scope, schema).items() if name in (columns or ())
    ]
    if len(holders) > 1:
        return AmbiguousColumnError(subject, written, holders, location=source.of(column.this))
    if holders or any(columns is None or name in columns for columns in reach.values()):
        return None
    if name in _aliases_in_reach(column, scope):
        return None
    everything = sorted({one for columns in reach.values() for one in columns or ()})
    return UnknownColumnError(subject, written, everything, location=source.of(column.this))


def _aliases_in_reach(column: exp.Column, scope: Scope) -> list[str]:
    """The outputs that a column may refer to: in a SELECT list, those before it; in WHERE, none.

    Qualifying gives a plain column an alias of its own name, which does not count.
    """
    if column.find_ancestor(exp.Where):
        return []
    outputs = _outputs(scope.expression)
    node: exp.Expr = column
    while node.parent is not None and node.parent is not scope.expression:
        node = node.parent
    if isinstance(scope.expression, exp.Select) and node.arg_key == "expressions":
        return outputs[: node.index]
    return outputs


def _own(scope: Scope, schema: MappingSchema) -> dict[str, list[str] | None]:
    """Columns of each relation in FROM; None if unknown."""
    return {
        name: _columns_of(source, schema) for name, (_, source) in scope.selected_sources.items()
    } | {
        name: _columns_of(source, schema)
        for name, source in scope.sources.items()
        if isinstance(source, Scope) and source.is_udtf
    }


def _is_added(column: exp.Column) -> bool:
    """Whether qualifying added a column's table."""
    table = column.args["table"]
    return table.meta.get("start") is None and column.this.meta.get("start") is not None


def _reach(column: exp.Column, scope: Scope, schema: MappingSchema) -> dict[str, list[str] | None]:
    """The relations in scope: those of FROM, and those of outer queries."""
    found = _own(scope, schema) | _semi_joined(column, scope, schema)
    around = scope.parent
    inner = scope
    while around is not None:
        if inner.is_subquery or inner.is_udtf or inner.can_be_correlated:
            found = _own(around, schema) | _semi_joined(column, around, schema) | found
        inner, around = around, around.parent
    return found


def _semi_joined(
    column: exp.Column, scope: Scope, schema: MappingSchema
) -> dict[str, list[str] | None]:
    """The right side of the semi or anti join in whose condition a column stands."""
    return {
        join.this.alias_or_name: _columns_of(scope.sources[join.this.alias_or_name], schema)
        for join in scope.expression.args.get("joins") or ()
        if join.kind in {"SEMI", "ANTI"}
        and join.this.alias_or_name in scope.sources
        and contains(join, column)
    }


def _columns_of(source: exp.Expr | Scope, schema: MappingSchema) -> list[str] | None:
    if isinstance(source, exp.Table):
        return list(schema.column_names(source)) or None
    if isinstance(source, Scope) and source.is_udtf:
        return source.expression.alias_column_names or None
    if isinstance(source, Scope):
        names = _outputs(source.expression)
        outer = source.outer_columns
        if _pivots(source) or any(one.unalias().meta.get(UNNAMED) for one in _selected(source)):
            return None
        names = list(outer) if outer else names
        return None if "*" in names or not names else names
    return None


def _pivots(scope: Scope) -> bool:
    """Whether a PIVOT or UNPIVOT, whose columns only Spark names, is in reach of a query."""
    around: Scope | None = scope
    while around is not None:
        node = around.expression
        relations = relations_of(node) if isinstance(node, exp.Select) else ()
        if any(one.args.get("pivots") for one in (node, *relations)):
            return True
        around = around.parent
    return False


def _selected(scope: Scope) -> list[exp.Expr]:
    query = scope.expression
    return query.selects if isinstance(query, exp.Query) else []


def _of_grouping_function(column: exp.Column, scope: Scope) -> bool:
    if not {column.table, column.name} & _GROUPING_COLUMNS:
        return False
    return any(
        call.name.lower() in _GROUPING_COLUMNS for call in scope.expression.find_all(exp.Anonymous)
    )


def _written(node: exp.Expr, source: SqlText) -> str:
    """The name as written in the file: qualifying lowers its case."""
    start, end = node.meta.get("start"), node.meta.get("end")
    if start is None or end is None:
        return node.name
    return source.text[start : end + 1].strip("`")


def _outputs(query: exp.Expr) -> list[str]:
    return list(query.named_selects) if isinstance(query, exp.Query) else []
