"""Runs one step of the stack in this process, for a container engine as the supervisor.

``python -m spark_jobs.stack.foreground run|probe|alive|finish STEP``. Commands, files and
health checks come from the same code that the local stack uses.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from spark_jobs.settings import Settings, load_settings
from spark_jobs.stack.catalog import all_steps
from spark_jobs.stack.environment import stack_environment
from spark_jobs.stack.launch import secret_variables
from spark_jobs.stack.parts import Part, Step, Task
from spark_jobs.stack.placeholder import ensure_placeholder
from spark_jobs.stack.stack import write_manifest
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.in_force import copy_in_force, manifest_of
from spark_jobs.storage.rights import close_state, private_files

MANIFEST = "manifest"


def stack_steps(settings: Settings) -> list[Step]:
    """Every step of the stack, including the compilation of the project."""
    return [Task(MANIFEST, lambda: prepare_manifest(settings)), *all_steps(settings)]


def prepare_manifest(settings: Settings) -> None:
    """Write the manifest of the deployment in force; without one, compile the project.

    The control database knows what was applied: a state directory may be new, or older than that.

    Raises:
        ControlUnreachableError: the control database does not answer.
        ProblemsError: the declarations have problems.
    """
    # sqlglot is slow
    from spark_jobs.storage.compiled import compile_settings  # noqa: PLC0415

    if not settings.control_db:
        write_manifest(settings)
        return
    ensure_placeholder(settings)
    with ControlStore.open(settings.control_url) as store:
        found = store.deployment_in_force()
    # Another release's may not be readable; the streams compile too, then.
    applied = manifest_of(found)
    if applied is None:
        compile_settings(settings)
    else:
        copy_in_force(settings, applied)


def run(settings: Settings, step: Step) -> None:
    """Run a task, or replace this process by a part's."""
    close_state(settings.state)
    if isinstance(step, Task):
        step.run()
        return
    step.prepare()
    record = settings.state / "run" / f"{step.name}.pid"
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(str(os.getpid()))
    # The container's environment is for the part: it contains an object store's credentials.
    variables = secret_variables(str(step.variables or ""))
    environment = {**os.environ, **stack_environment(settings), **step.environment, **variables}
    os.execvpe(step.command[0], step.command, environment)  # noqa: S606 - no shell is wanted


def exit_status(lacks: str | None) -> int:
    """Print why a step is not ready; returns the exit status, 0 if it is."""
    if lacks is not None:
        print(lacks)
    return 0 if lacks is None else 1


@private_files()
def main(arguments: Sequence[str]) -> int:
    """Run one command for one step; returns the exit status."""
    verb, name = arguments
    settings = load_settings()
    by_name = {step.name: step for step in stack_steps(settings)}
    match verb, by_name[name]:
        case "run", step:
            run(settings, step)
        case "probe", Part() as part:
            # A container engine lets other services wait for this.
            return exit_status((part.serves or part.probe)())
        case "alive", Part() as part:
            return exit_status((part.alive or part.probe)())
        case "finish", Part() as part:
            part.finish()
        case _:
            raise SystemExit(f"{verb!r} does not apply to {name!r}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
