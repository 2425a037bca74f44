"""`tack up`: start everything, tell the story on the first start, stay until Ctrl-C, stop everything in order."""

import argparse
import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

from lookout.embedded import broker, leftovers, postgres, services
from lookout.embedded.children import run, spawn
from lookout.embedded.configuration import checked_configuration
from lookout.embedded.files import write_private
from lookout.embedded.folders import Folders, StartRefused, full_disk_sentence, only_one, prepare
from lookout.embedded.progress import step, tell
from lookout.embedded.services import CHECKOUT, Stack
from lookout.embedded.supervisor import Service, Supervisor
from lookout.story.checking import check

_NO_ROOM = os.strerror(errno.ENOSPC)
_WHAT_STOPS = {
    "story": "Story",
    "agent": "Agent: running jobs are given back",
    "schedule": "Schedule",
    "worker": "Worker",
    "web": "Web",
    "broker": "Broker",
    "postgres": "PostgreSQL",
}


def main(arguments: list[str]) -> int:
    """The exit code of `tack up` with these arguments."""
    options = _parse(arguments)
    if options.check:
        return check(keep=options.keep)
    _stop_on_signals()
    try:
        folders = prepare(Path(os.environ.get("TACK_VAR") or CHECKOUT / "var"))
        with only_one(folders):
            return up(folders, first_port=options.port, with_story=not options.no_story)
    except (StartRefused, postgres.PostgresMissing, broker.BrokerMissing, services.NoPort) as refusal:
        print(f"tack: {refusal}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def up(folders: Folders, *, first_port: int, with_story: bool) -> int:
    """Run one Tack until Ctrl-C (exit code 0), or say why it cannot start (1)."""
    warnings = checked_configuration(folders)
    if names := leftovers.end_leftovers(folders.run / "children.json"):
        tell(f"An earlier Tack here was killed; ended what it left behind: {', '.join(names)}.")
    supervisor = Supervisor(folders.run / "children.json")
    with ExitStack() as closing:
        closing.callback(folders.leave_runs)
        closing.callback(services.forget_addresses, folders)
        closing.callback(supervisor.stop, lambda name: step(_WHAT_STOPS[name]))
        try:
            stack = _start(supervisor, folders, first_port, warnings)
            closing.callback(stack.listener.close)
            if with_story and stack.database and not folders.told.exists():
                supervisor.start(_story(stack))
            supervisor.watch()
        except KeyboardInterrupt:
            tell("\nTack is stopping; Ctrl-C again takes the time away that jobs get to end.")
        except (RuntimeError, OSError, subprocess.SubprocessError) as failure:
            _complain(failure, folders)
            return 1
    tell("Tack has stopped. ./tack up starts it again with everything it knew.")
    return 0


def _complain(failure: Exception, folders: Folders) -> None:
    print(f"tack: {failure}", file=sys.stderr)
    if _NO_ROOM in str(failure):
        print(f"tack: {full_disk_sentence(folders.var)}", file=sys.stderr)


def _start(supervisor: Supervisor, folders: Folders, first_port: int, warnings: Sequence[str]) -> Stack:
    tell("Tack is starting.")
    stack = _describe(folders, first_port)
    with step(_servers_named(stack)):
        if stack.database:
            supervisor.start(services.database_service(stack, stack.database))
        if stack.broker:
            supervisor.start(services.broker_service(stack, stack.broker))
    services.keep_addresses(stack)
    with step("Tables"):
        sign_in_path = _prepare_database(stack)
    with step("Web, worker, schedule"):
        _start_processes(supervisor, stack)
    with step("Agent with the local executor"):
        agent = services.agent_service(stack)
        services.wait_for_file(
            agent,
            supervisor.start(agent),
            services.ready_file(stack, "agent"),
            meanwhile=lambda: supervisor.look_after_all_but(agent),
        )
    _welcome(stack, sign_in_path, first_port)
    for warning in warnings:
        tell(f"{warning}\n")
    return stack


def _describe(folders: Folders, first_port: int) -> Stack:
    database = None
    if not os.environ.get("DATABASE_URL"):
        database = postgres.cluster(folders.var, log=folders.log("postgres"))
    own_broker = (
        None if os.environ.get("BROKER_URL") else broker.broker(folders.var, log=folders.log("broker"))
    )
    listener = services.listen(first_port)
    return Stack(folders=folders, database=database, broker=own_broker, listener=listener)


def _start_processes(supervisor: Supervisor, stack: Stack) -> None:
    web, worker, schedule = (
        services.web_service(stack),
        services.worker_service(stack),
        services.schedule_service(stack),
    )
    started = {service.name: supervisor.start(service) for service in (web, worker, schedule)}

    def look_after_the_others() -> None:
        supervisor.look_after_all_but(web, worker, schedule)

    services.wait_for_web(web, started["web"], stack.url, meanwhile=look_after_the_others)
    services.wait_for_file(
        worker, started["worker"], services.ready_file(stack, "worker"), meanwhile=look_after_the_others
    )


def _prepare_database(stack: Stack) -> str:
    """Bring the tables up to date and write the tokens; the path of a sign-in link, empty for a database of others."""
    command = [sys.executable, "-P", str(CHECKOUT / "manage.py"), "prepare", "--agent", services.EXECUTOR]
    if stack.database:
        command.append("--with-admin")
    done = run(command, env=stack.environment())
    if done.returncode != 0:
        stack.folders.log("prepare").write_text(done.stdout + done.stderr)
        words = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise StartRefused(
            f"The tables could not be prepared: {' '.join(words)} ({stack.folders.log('prepare')})"
        )
    made = json.loads(done.stdout)
    write_private(stack.folders.agent_token, made["agentToken"])
    if made["apiToken"]:
        write_private(stack.folders.token, f"{stack.url}\n{made['apiToken']}")
    return str(made["signInPath"])


def _welcome(stack: Stack, sign_in_path: str, wanted_port: int) -> None:
    port = stack.listener.getsockname()[1]
    if wanted_port and port != wanted_port:
        tell(f"Port {wanted_port} is taken by another program, so Tack has port {port}.")
    tell(f"\nTack is at {stack.url}")
    if sign_in_path:
        tell(f"Sign in (good once, for ten minutes): {stack.url}{sign_in_path}")
        tell("Another link: ./tack login. Stop with Ctrl-C.\n")
    else:
        tell(
            "The database is yours, so no admin was made. With DATABASE_URL set as here:"
            " ./tack person NAME --role admin --sign-in-link"
        )
        tell("Stop with Ctrl-C.\n")


def _story(stack: Stack) -> Service:
    log = stack.folders.log("story")
    command = [sys.executable, "-P", "-m", "lookout.story", "--told-file", str(stack.folders.told)]
    # The story is told here, whatever Tack the command line speaks to otherwise.
    env = stack.environment(TACK_URL="", TACK_TOKEN="")
    return Service(
        name="story",
        log=log,
        start=lambda: spawn(command, log=None, env=env),
        stage=services.STORY,
        grace_seconds=10,
        once=True,
    )


def _servers_named(stack: Stack) -> str:
    names = [name for name, server in (("PostgreSQL", stack.database), ("broker", stack.broker)) if server]
    return " and ".join(names) or "Database and broker are yours"


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tack up", description="Start everything Tack needs on this machine; Ctrl-C stops it in order."
    )
    parser.add_argument(
        "--port",
        type=int,
        default=int(os.environ.get("TACK_PORT") or services.FIRST_PORT),
        help="port of the dashboard on 127.0.0.1; the next free one is taken when it is busy (%(default)s)",
    )
    parser.add_argument("--no-story", action="store_true", help="do not tell the story on the first start")
    parser.add_argument(
        "--check",
        action="store_true",
        help="play the story on a scratch folder and its own port, verify it from outside, exit 0 or 1",
    )
    parser.add_argument("--keep", action="store_true", help="with --check: keep the scratch folder")
    return parser.parse_args(arguments)


def _stop_on_signals() -> None:
    # A script that starts us with & has Ctrl-C ignored for us; whoever sends that signal then still means it.
    signal.signal(signal.SIGINT, _as_ctrl_c)
    signal.signal(signal.SIGTERM, _as_ctrl_c)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
        signal.signal(signal.SIGHUP, _as_ctrl_c)


def _as_ctrl_c(*_: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
