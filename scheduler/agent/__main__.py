"""The agent as a program: `python -m scheduler.agent --url URL --token-file FILE --name NAME …`."""

import argparse
import errno
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scheduler.agent.client import SchedulerClient
from scheduler.agent.config import AgentConfiguration, load_agent_configuration
from scheduler.agent.conversation import Asker, Heart
from scheduler.agent.farewell import Farewell
from scheduler.agent.journal import Journal, JournalInUseError
from scheduler.agent.judging import Judge
from scheduler.agent.loop import Agent, StopAgent
from scheduler.agent.outbox import Outbox
from scheduler.config import ConfigurationInvalid
from scheduler.executors.ladder import RungMissingError
from scheduler.executors.local import LocalExecutor, LocalExecutorError, LocalSettings
from scheduler.executors.memory import AUTO, CGROUP1, CGROUP2, POLL
from scheduler.executors.protocol import CategoryDescription, Executor, Heartbeat, WorkRequest
from scheduler.fields import written_out

VERSION = "1"
READY_FILE = "TACK_READY_FILE"
_FAULTS = (ConfigurationInvalid, JournalInUseError, LocalExecutorError, RungMissingError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run an agent until it is told to stop (SIGTERM or SIGINT; a second one drops the grace). The exit code."""
    options = _options(argv)
    _log_to_stderr()
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        configuration = load_agent_configuration(options.config, os.environ)
        _run(options, configuration)
    except _FAULTS as error:
        logging.error("%s", error)
        return 2
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        logging.error("The disk with %s is full. Make room and start the agent again.", options.folder)
        return 1
    return 0


class _Lines(logging.Formatter):
    """Each entry in one line, whatever is told in it; a traceback's own lines are indented."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  as logging has it
        record.message = written_out(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802
        return "\n".join(f"    {written_out(line)}" for line in super().formatException(ei).split("\n"))


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def _run(options: argparse.Namespace, configuration: AgentConfiguration) -> None:
    journal = Journal(options.folder)
    executor = LocalExecutor(_local_settings(options, configuration))

    def client() -> SchedulerClient:
        return SchedulerClient(url=options.url, token_file=options.token_file, executor=options.name)

    agent = Agent(
        executor=executor,
        journal=journal,
        judge=Judge(categories=configuration.categories, failed_checks=configuration.failed_checks),
        limits=configuration.limits,
        outbox=lambda answered: Outbox(client(), answered=answered),
        found=executor.found(),
    )
    heart = Heart(
        client(),
        interval_seconds=configuration.heartbeat_seconds,
        describe=_describer(options.name, executor, configuration),
        first_heard=_say_ready,
    )
    request = _requester(options.name, agent)
    asker = Asker(
        client(),
        request=request,
        deliver=lambda work, done: agent.tell(work, done=done),
        after=heart.was_heard,
    )
    farewell = Farewell(client(), request=request, heart=heart, agent=agent)
    _heed_signals(agent, farewell)
    heart.start()
    asker.start()
    farewell.start()
    logging.info("Agent %s serves %s.", options.name, options.url)
    agent.run()
    asker.close()
    heart.close()
    agent.close()


def _say_ready() -> None:
    """Whoever started the agent may name a file that is to appear when the scheduler knows of it."""
    if READY_FILE in os.environ:
        Path(os.environ[READY_FILE]).touch()


def _heed_signals(agent: Agent, farewell: Farewell) -> None:
    asked: list[int] = []

    def stop(number: int, _frame: object) -> None:
        farewell.begin()
        if asked:
            agent.tell(StopAgent(hurry=True))
        asked.append(number)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


def _describer(name: str, executor: Executor, configuration: AgentConfiguration) -> Callable[[], Heartbeat]:
    categories = tuple(
        CategoryDescription(name=category, disposition=disposition)
        for category, disposition in configuration.categories.names_with_disposition()
    )

    def describe() -> Heartbeat:
        return Heartbeat(
            executor=name,
            pool=configuration.pool,
            version=VERSION,
            agent_time=datetime.now(UTC).isoformat(),
            nodes=tuple(executor.nodes()),
            categories=categories,
            tracked_node_labels=configuration.tracked_node_labels,
            honours=tuple(executor.honours),
        )

    return describe


def _requester(name: str, agent: Agent) -> Callable[[float], WorkRequest]:
    def request(wait_seconds: float) -> WorkRequest:
        runs, stopping = agent.known_runs, agent.stopping_runs
        return WorkRequest(executor=name, runs=runs, stopping=stopping, wait_seconds=wait_seconds)

    return request


def _local_settings(options: argparse.Namespace, configuration: AgentConfiguration) -> LocalSettings:
    return LocalSettings(
        name=options.name,
        slices=configuration.local_nodes,
        cpu_millicores=configuration.local_cpu_millicores,
        memory_bytes=configuration.local_memory_bytes,
        node_id_label=configuration.node_id_label,
        folder=options.folder,
        runs_folder=options.runs_folder,
        memory_by=options.memory_by,
    )


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tack agent", description="Join the local executor to a scheduler.")
    parser.add_argument(
        "--url", required=True, help="address of the scheduler, such as http://127.0.0.1:8000"
    )
    parser.add_argument("--token-file", required=True, type=Path, help="file with this executor's token")
    parser.add_argument(
        "--config", type=Path, help="configuration file (YAML); without one the defaults hold"
    )
    parser.add_argument("--name", default="local", help="name of the executor (local)")
    parser.add_argument("--folder", required=True, type=Path, help="the agent's own folder, for its journal")
    parser.add_argument("--runs-folder", required=True, type=Path, help="where the folders of runs are made")
    parser.add_argument(
        "--memory-by",
        default=AUTO,
        choices=[AUTO, CGROUP2, CGROUP1, POLL],
        help="who holds runs to their memory limits (auto: the best there is)",
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
