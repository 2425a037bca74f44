"""`tack bench NAME`: hand over to the benchmark of that name."""

import sys
from collections.abc import Callable, Sequence

from tests.benchmarks import agents, chaos, latency, loop, runners, storm

BENCHMARKS: dict[str, Callable[[Sequence[str]], int]] = {
    "agents": agents.main,
    "chaos": chaos.main,
    "latency": latency.main,
    "loop": loop.main,
    "runners": runners.main,
    "storm": storm.main,
}


def main(arguments: Sequence[str]) -> int:
    """The exit code of the benchmark; 2 when there is none of that name."""
    if arguments and arguments[0] in BENCHMARKS:
        return BENCHMARKS[arguments[0]](arguments[1:])
    sys.stderr.write(f"usage: tack bench {{{','.join(BENCHMARKS)}}} [-h] …\n")
    return 0 if arguments[:1] in (["-h"], ["--help"]) else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
