"""``tidemark fmt``: formats the SQL of silver tables and gold views."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.errors import LakehouseError, ProblemsError
from spark_jobs.names import Layer
from spark_jobs.project_files import read_text
from spark_jobs.settings import load_settings


def fmt(
    context: typer.Context,
    files: Annotated[
        list[Path] | None, typer.Argument(help="Files in sql/. Default: all.", exists=True)
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 if a file would change.")
    ] = False,
) -> None:
    """Format SQL files: keywords, line breaks, indentation; headers and comments stay."""
    project = load_settings(context.obj).project_dir
    changed, problems = 0, list[LakehouseError]()
    for path in files or _declared(project):
        file = _shown(path, project)
        try:
            before = read_text(path, file, encoding="utf-8")
            after = formatted(before, file=file, layer=Layer(path.parent.name))
        except LakehouseError as error:
            problems.append(error)
            continue
        except ValueError as error:
            raise typer.BadParameter(
                f"{path} is not an SQL file in sql/silver or sql/gold"
            ) from error
        if before != after:
            changed += 1
            typer.echo(f"{'would format' if check else 'formatted'} {file}")
            if not check:
                path.write_bytes(after.encode("utf-8"))
    if problems:
        raise ProblemsError(problems)
    if not changed:
        typer.echo("Every file is formatted.")
    elif check:
        raise typer.Exit(1)


def formatted(text: str, *, file: str, layer: Layer) -> str:
    """The text of a SQL file with its statement formatted; everything else stays unchanged.

    Raises:
        LakehouseError: no header, not a single SELECT, or formatting would change its meaning.
    """
    from spark_jobs.definitions.header import split_header
    from spark_jobs.graph.layout import laid_out
    from spark_jobs.graph.parsing import SqlText

    windows = "\r\n" in text
    plain = text.replace("\r\n", "\n")
    mark = "\ufeff" if plain.startswith("\ufeff") else ""
    parts = split_header(plain.removeprefix(mark), file, layer)
    if not parts.sql:
        # `validate` says that the SELECT is missing; until then the file is a draft.
        return text
    # The header is replaced by blanks, so that locations in errors are those of the file.
    start = len(parts.padded) - len(parts.padded.lstrip())
    blank = parts.padded[:start]
    statement = laid_out(SqlText(file, blank + parts.sql))
    written = f"{mark}{plain.removeprefix(mark)[:start]}{statement}\n"
    return written.replace("\n", "\r\n") if windows else written


def _declared(project: Path) -> Iterator[Path]:
    for layer in (Layer.SILVER, Layer.GOLD):
        for path in sorted((project / "sql" / layer).glob("*")):
            # Editors write drafts and locks, whose names start with a dot.
            if path.suffix.lower() == ".sql" and not path.name.startswith("."):
                yield path


def _shown(path: Path, project: Path) -> str:
    # The file may be a link, even to itself; `fmt` reports the link.
    absolute = path.parent.resolve() / path.name
    inside = absolute.is_relative_to(project.resolve())
    return absolute.relative_to(project.resolve()).as_posix() if inside else str(path)
