"""Reads arrays, maps and structs of a JSON document, each part by the rules of its own type.

A cast of the whole document would turn a part that does not fit into NULL, like a null one. So
documents are taken apart down to their scalars, and misfits are reported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as sf

from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.silver.parse.casting import scalar, text_at

_NESTED = re.compile(r"(array|map|struct)<(.*)>")
_FIELD = re.compile(r"(`[^`]+`|[^:]+):(.*)")
_ROOT = "$"


def nested(type_name: str) -> bool:
    """Whether a type is an array, a map or a struct."""
    return _NESTED.fullmatch(type_name) is not None


@dataclass(frozen=True)
class Nested:
    """Reads variants as a declared type.

    Attributes:
        type_name: a Spark SQL type in lower case; map keys are scalars.
        origin: see ``casting.scalar``.
    """

    type_name: str
    origin: SourceFormat

    def value(self, document: Column) -> Column:
        """The document as this type; parts that are null, missing or do not fit are NULL."""
        match self._parts():
            case ("array", [(_, element)]):
                return sf.transform(_items(document), element.value)
            case ("map", [(_, key), (_, value)]):
                pairs = sf.transform(
                    sf.map_entries(_fields(document)),
                    lambda pair: sf.struct(
                        key.converted(pair["key"]).alias("key"),
                        value.value(pair["value"]).alias("value"),
                    ),
                )
                return sf.when(~self._keys_misfit(key, document), sf.map_from_entries(pairs))
            case ("struct", fields):
                parts = [kind.value(_field(document, name)).alias(name) for name, kind in fields]
                return sf.when(_fields(document).isNotNull(), sf.struct(*parts))
            case _:
                return self.converted(text_at(document, _ROOT))

    def misfit(self, document: Column) -> Column:
        """Whether any part of the document exists and does not fit; never NULL."""
        present = text_at(document, _ROOT).isNotNull()
        match self._parts():
            case ("array", [(_, element)]):
                items = _items(document)
                return (present & items.isNull()) | _any(items, element)
            case ("map", [(_, key), (_, value)]):
                fields = _fields(document)
                keys = self._keys_misfit(key, document)
                return (present & fields.isNull()) | keys | _any(sf.map_values(fields), value)
            case ("struct", fields):
                found = present & _fields(document).isNull()
                for name, kind in fields:
                    found = found | kind.misfit(_field(document, name))
                return found
            case _:
                return present & self.value(document).isNull()

    def converted(self, text: Column) -> Column:
        """A scalar's text as this type."""
        return scalar(text, self.type_name, origin=self.origin)

    def _parts(self) -> tuple[str, list[tuple[str, Nested]]]:
        """The kind of the type, and its parts, with names for a struct."""
        found = _NESTED.fullmatch(self.type_name)
        if not found:
            return "scalar", []
        parts = split(found[2])
        named = [_FIELD.findall(part)[0] if found[1] == "struct" else ("", part) for part in parts]
        return found[1], [(name.strip("`"), Nested(kind, self.origin)) for name, kind in named]

    def _keys_misfit(self, key: Nested, document: Column) -> Column:
        """Whether keys do not fit or collide: building the map would raise an error."""
        if key.type_name == "string":
            return sf.lit(False)  # noqa: FBT003
        keys = sf.transform(sf.map_keys(_fields(document)), key.converted)
        distinct = sf.size(sf.array_distinct(keys)) == sf.size(keys)
        return sf.coalesce(sf.exists(keys, sf.isnull) | ~distinct, sf.lit(False))  # noqa: FBT003


def split(text: str) -> list[str]:
    """Split at commas that are outside of brackets and backquotes.

    >>> split("a:decimal(12,2),b:map<string,int>,`c,d`:int")
    ['a:decimal(12,2)', 'b:map<string,int>', '`c,d`:int']
    """
    parts, depth, quoted = [""], 0, False
    for sign in text:
        quoted ^= sign == "`"
        if not quoted:
            depth += (sign in "<(") - (sign in ">)")
        if sign == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def _items(document: Column) -> Column:
    return sf.try_variant_get(document, _ROOT, "array<variant>")


def _fields(document: Column) -> Column:
    return sf.try_variant_get(document, _ROOT, "map<string,variant>")


def _field(document: Column, name: str) -> Column:
    return sf.try_variant_get(document, f"{_ROOT}['{name}']", "variant")


def _any(items: Column, kind: Nested) -> Column:
    return sf.coalesce(sf.exists(items, kind.misfit), sf.lit(False))  # noqa: FBT003
