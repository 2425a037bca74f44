"""`tack bench NAME`: hand over to the benchmark of that name."""

import sys
from collections.abc import Callable, Sequence

from tests.benchmarks import agents, chaos, history, latency, loop, rounds, runners, storm

BENCHMARKS: dict[str, Callable[[Sequence[str]], int]] = {
    "agents": agents.main,
    "chaos": chaos.main,
    "history": history.main,
    "latency": latency.main,
    "loop": loop.main,
    "rounds": rounds.main,
    "runners": runners.main,
    "storm": storm.main,
}


def main(arguments: Sequence[str]) -> int:
    """The exit code of the benchmark; 2 when there is none of that name."""
    if arguments and arguments[0] in BENCHMARKS:
        return BENCHMARKS[arguments[0]](arguments[1:])
    wants_help = arguments[:1] in (["-h"], ["--help"])
    (sys.stdout if wants_help else sys.stderr).write(usage())
    return 0 if wants_help else 2


def usage() -> str:
    """The benchmarks, a line each: the first of what its module says of itself."""
    said = (sys.modules[benchmark.__module__].__doc__ or "" for benchmark in BENCHMARKS.values())
    lines = [f"  {name:10}{text.partition(chr(10))[0]}" for name, text in zip(BENCHMARKS, said, strict=True)]
    return "\n".join([f"usage: tack bench {{{','.join(BENCHMARKS)}}} [-h] …", "", *lines, ""])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
