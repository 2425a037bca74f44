"""Everything is killed once while jobs with retries run: each job ends as its script says. `tack bench chaos` does more."""

import random

from tests.benchmarks.chaos import killable_tack, play


def test_every_process_may_be_killed_and_each_job_ends_as_its_script_says() -> None:
    said: list[str] = []
    chance = random.Random("a journey")  # noqa: S311 - the same each time
    with killable_tack() as tack:
        chaos = play(tack, jobs=30, kills=12, pause=0.3, chance=chance, say=said.append)
        assert tack.stop() == 0
    assert chaos.killed.total() >= 11, said
    assert len(chaos.jobs) == 30
