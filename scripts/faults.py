"""Mutants of a module: possible changes of its syntax nodes, and a loader for them."""

from __future__ import annotations

import ast
import copy
import hashlib
import importlib.abc
import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


@dataclass(frozen=True)
class Mutant:
    """One change of one module.

    Attributes:
        file: relative to the root.
        line: of the change.
        place: the number of the node in the order of the walk.
        what: a description of the change.
        around: the code that a constant is a direct part of; "" for other nodes.
        function: the qualified name of the function or class around the node; "" at module level.
        at_import: whether the node runs at import, when no check is traced.
        key: identifies the mutant as long as the module does not change.
    """

    file: str
    line: int
    place: int
    what: str
    around: str
    function: str
    at_import: bool
    key: str

    def is_meant_by(self, entry: Mapping[str, Any]) -> bool:
        """Whether an entry of ``tests/equivalent.yml`` is about it, in the list of its module."""
        same = (entry["in"], entry["change"]) == (self.function, self.what)
        return same and entry.get("of", self.around) == self.around

    def tree(self) -> ast.Module:
        """The module with the change."""
        tree = ast.parse((ROOT / self.file).read_text(encoding="utf-8"))
        node = list(ast.walk(tree))[self.place]
        new = dict(changes(node))[self.what]
        for parent in ast.walk(tree):
            for name, value in ast.iter_fields(parent):
                if value is node:
                    setattr(parent, name, new)
                elif isinstance(value, list) and any(one is node for one in value):
                    value[:] = [new if one is node else one for one in value]
        return ast.fix_missing_locations(tree)


def changes(  # noqa: C901, PLR0912 - one case for each kind of node
    node: ast.AST,
) -> Iterator[tuple[str, ast.AST]]:
    """Possible replacements of a node, by description."""
    new = copy.deepcopy(node)
    match new:
        case ast.Compare(ops=[operator]) if type(operator) in _COMPARED:
            new.ops = [_COMPARED[type(operator)]()]
            yield f"{ast.unparse(node)} -> {ast.unparse(new)}", new
        case ast.BoolOp():
            new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
            yield f"{ast.unparse(node)} -> {ast.unparse(new)}", new
            for at, _ in enumerate(new.values):
                left = [one for other, one in enumerate(new.values) if other != at]
                less = ast.BoolOp(node.op, left) if len(left) > 1 else left[0]  # type: ignore[attr-defined]
                yield f"{ast.unparse(node)} -> {ast.unparse(less)}", less
        case ast.UnaryOp(op=ast.Not()):
            yield f"{ast.unparse(node)} -> {ast.unparse(new.operand)}", new.operand
        case ast.BinOp(op=operation) if type(operation) in _COMPUTED:
            if not any(isinstance(one, ast.JoinedStr) for one in (new.left, new.right)):
                new.op = _COMPUTED[type(operation)]()
                yield f"{ast.unparse(node)} -> {ast.unparse(new)}", new
        case ast.Constant(value=bool() as value):
            yield f"{value} -> {not value}", ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield f"{value} -> {value + 1}", ast.Constant(value + 1)
        case ast.If(test=ast.Name("TYPE_CHECKING")):
            pass
        case ast.If() | ast.IfExp():
            for truth in (True, False):
                other = copy.deepcopy(new)
                other.test = ast.Constant(truth)
                yield f"if {ast.unparse(new.test)} -> if {truth}", other
        case ast.comprehension(ifs=[_, *_]):
            new.ifs = []
            yield f"for … if {ast.unparse(node.ifs[0])} -> for …", new  # type: ignore[attr-defined]
        case ast.Expr(value=ast.Call()):
            yield f"{ast.unparse(node)} -> pass", ast.Pass()
        case ast.Return(value=ast.Tuple() | ast.Name() | ast.Call() | ast.IfExp()):
            new.value = ast.Constant(None)
            yield f"{ast.unparse(node)} -> return None", new


def mutants(file: str) -> list[Mutant]:
    """All mutants of a module."""
    text = (ROOT / file).read_text(encoding="utf-8")
    tree = ast.parse(text)
    # Annotations are not executed, decorator values are settings, ``strict`` is a check.
    silent = {
        id(inner)
        for one in ast.walk(tree)
        for name in ("annotation", "returns", "decorator_list")
        for part in [getattr(one, name, None)]
        for top in (part if isinstance(part, list) else [part] if part else [])
        for inner in ast.walk(top)
    } | {
        id(one.value)
        for one in ast.walk(tree)
        if isinstance(one, ast.keyword) and one.arg == "strict"
    }
    called = {
        id(inner)
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef | ast.Lambda)
        for part in (one.body if isinstance(one.body, list) else [one.body])
        for inner in ast.walk(part)
    }
    names = dict(_functions(tree, ""))
    above = {id(one): node for node in ast.walk(tree) for one in ast.iter_child_nodes(node)}
    found = []
    for place, node in enumerate(ast.walk(tree)):
        if id(node) in silent:
            continue
        at = node.iter if isinstance(node, ast.comprehension) else node
        line = int(getattr(at, "lineno", 0))
        for what, _ in changes(node):
            key = hashlib.sha256(f"{text}{place}{what}".encode()).hexdigest()[:16]
            around = ast.unparse(above[id(node)]) if isinstance(node, ast.Constant) else ""
            name, at_import = names[id(node)], id(node) not in called
            found.append(Mutant(file, line, place, what, around, name, at_import, key))
    return found


def _functions(node: ast.AST, around: str) -> Iterator[tuple[int, str]]:
    """The id of each node, and the qualified name of what is around it."""
    for one in ast.iter_child_nodes(node):
        yield id(one), around
        own = isinstance(one, ast.FunctionDef | ast.ClassDef)
        yield from _functions(one, f"{around}.{one.name}".lstrip(".") if own else around)


class Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads a module with one change."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.name = mutant.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        del path, target
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, ROOT / self.mutant.file, loader=self)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        del spec
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.mutant.tree(), self.mutant.file, "exec"), vars(module))  # noqa: S102
