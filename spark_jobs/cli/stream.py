"""``tidemark stream run``: the streaming application."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from types import FrameType

import typer

from spark_jobs.settings import load_settings

app = typer.Typer(no_args_is_help=True, help="Kafka to bronze, silver, continuous gold and sinks.")


@app.callback()
def streams() -> None:
    """Commands for the streaming application."""


@app.command()
def run(context: typer.Context) -> None:
    """Run the streams, continuous views and sinks until the process is stopped."""
    from spark_jobs.state.stopped import note_stopped
    from spark_jobs.streaming.application import serve

    settings = load_settings(context.obj)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    # py4j logs every call that Spark makes back into this process.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        if number == signal.SIGINT:
            # Interrupted at a terminal; a supervisor sends SIGTERM instead.
            note_stopped(settings.state)
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    if not serve(settings, stopping):
        raise typer.Exit(1)
