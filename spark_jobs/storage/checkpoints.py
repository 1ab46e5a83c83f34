"""Reads streaming checkpoints and writes small files next to them, without Spark.

A checkpoint has one numbered file of planned offsets per batch, and one numbered file per finished
batch. A query resumes at the offsets of the last finished batch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyarrow import fs

from spark_jobs.state.epochs import FIRST_EPOCH
from spark_jobs.storage.errors import CheckpointFormatError
from spark_jobs.storage.lake import Lake, remote_location

# Version line of Spark's offset files.
FORMAT = "v1"


@dataclass(frozen=True)
class BatchOffsets:
    """The end offsets of a batch of a query with one source.

    Attributes:
        at: when the batch was planned; None if unknown.
    """

    batch_id: int
    offsets: dict[str, Any]
    at: datetime | None = None


def last_committed(checkpoint: str) -> BatchOffsets | None:
    """The last finished batch, or None.

    Raises:
        CheckpointFormatError: another version of Spark wrote the checkpoint.
    """
    ended = _numbers(f"{checkpoint}/commits")
    return None if not ended else planned(checkpoint, max(ended))


def last_planned(checkpoint: str) -> int | None:
    """The number of the last planned batch, finished or not."""
    return max(_numbers(f"{checkpoint}/offsets"), default=None)


def planned(checkpoint: str, batch_id: int) -> BatchOffsets | None:
    """The offsets of a planned batch; None if it is not planned.

    Raises:
        CheckpointFormatError: another version of Spark wrote the file in another format.
    """
    text = read_text(f"{checkpoint}/offsets/{batch_id}")
    if text is None:
        return None
    # The version, the query's metadata, then one line per source.
    version, *lines = text.splitlines() or [""]
    if version != FORMAT:
        raise CheckpointFormatError(checkpoint, found=version, known=FORMAT)
    milliseconds = json.loads(lines[0]).get("batchTimestampMs")
    at = None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)
    return BatchOffsets(batch_id, json.loads(lines[1]), at)


def query_id(checkpoint: str) -> str | None:
    """The id of the query that owns the checkpoint; None before its first start."""
    text = read_text(f"{checkpoint}/metadata")
    return None if text is None else str(json.loads(text)["id"])


def damage(checkpoint: str) -> str | None:
    """Why a query cannot resume from its checkpoint, as a sentence; None if it can.

    A checkpoint without a planned batch counts as empty, not as damaged.
    """
    newest = last_planned(checkpoint)
    if newest is None:
        return None
    ended = max(_numbers(f"{checkpoint}/commits"), default=None)
    files = ["metadata", f"offsets/{newest}"]
    if ended is not None:
        files += [f"commits/{ended}", f"offsets/{ended}"]
    for name in dict.fromkeys(files):
        text = read_text(f"{checkpoint}/{name}")
        if text is None:
            return f"{checkpoint}/{name} is missing"
        # After the version, an offsets file has a line for the query and one for its source.
        lines = text.splitlines() if name == "metadata" else text.splitlines()[1:]
        if len(lines) < (2 if name.startswith("offsets") else 1) or not all(map(_is_json, lines)):
            return f"{checkpoint}/{name} is not whole"
    return None


def newest_epoch(lake: Lake, query: str) -> int:
    """The highest epoch among a query's checkpoints and the files next to them."""
    system, path = _resolve(lake.checkpoints(query))
    listed = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
    numbers = (entry.base_name.partition(".")[0] for entry in listed)
    return max((int(one) for one in numbers if one.isdecimal()), default=FIRST_EPOCH)


def newest_checkpoint(lake: Lake, query: str) -> str:
    """The checkpoint of a query's newest epoch; it may not exist yet."""
    return lake.checkpoint(query, newest_epoch(lake, query))


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def read_text(location: str) -> str | None:
    """The text of a small file, or None if it does not exist."""
    system, path = _resolve(location)
    if system.get_file_info(path).type is not fs.FileType.File:
        return None
    with system.open_input_stream(path) as file:
        return str(file.read().decode("utf-8"))


def write_text(location: str, text: str) -> None:
    """Write a small file atomically."""
    system, path = _resolve(location)
    if isinstance(system, fs.LocalFileSystem):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(f"{path}.new")
        temporary.write_text(text, "utf-8")
        temporary.replace(path)
        return
    with system.open_output_stream(path) as file:
        file.write(text.encode())


def _numbers(directory: str) -> list[int]:
    system, path = _resolve(directory)
    listed = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
    return [int(entry.base_name) for entry in listed if entry.base_name.isdecimal()]


def _resolve(location: str) -> tuple[fs.FileSystem, str]:
    if not remote_location(location):
        return fs.LocalFileSystem(), location
    # Hadoop and Arrow use different URL schemes for S3.
    system, path = fs.FileSystem.from_uri(location.replace("s3a://", "s3://", 1))
    return system, str(path)
