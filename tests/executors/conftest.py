"""Local executors on every rung this machine has, and agents that talk to a stand-in of the scheduler."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.executors.ladder import RungMissingError, probe
from scheduler.executors.local import LocalExecutor
from tests.executors.agents import AgentProcess
from tests.executors.places import Bench, settings
from tests.executors.scheduler_stand_in import SchedulerStandIn


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that jobs of any user can reach; pytest's own are for one user only."""
    made = Path(tempfile.mkdtemp(prefix="tack-test-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


def _is_here(name: str) -> bool:
    try:
        probe(name)
    except RungMissingError:
        return False
    return True


@pytest.fixture(params=[name for name in ("cgroup2", "cgroup1", "poll") if _is_here(name)])
def rung(request: pytest.FixtureRequest) -> str:
    """Every rung of the memory ladder that this machine offers to this user."""
    return str(request.param)


@pytest.fixture
def bench(folder: Path, rung: str) -> Iterator[Bench]:
    """A local executor with a rung, and what it takes to run things on it."""
    executor = LocalExecutor(settings(folder, memory_by=rung))
    with Bench(executor, folder) as found:
        yield found


@pytest.fixture(scope="module")
def joined() -> Iterator[tuple[SchedulerStandIn, AgentProcess]]:
    """A scheduler and an agent at work, shared by tests that leave both as they were."""
    with SchedulerStandIn() as stand_in:
        made = AgentProcess(stand_in)
        made.start()
        yield stand_in, made
        made.close()


@pytest.fixture
def scheduler() -> Iterator[SchedulerStandIn]:
    with SchedulerStandIn() as stand_in:
        yield stand_in


@pytest.fixture
def agent(scheduler: SchedulerStandIn) -> Iterator[AgentProcess]:
    """An agent, not started yet."""
    made = AgentProcess(scheduler)
    yield made
    made.close()
