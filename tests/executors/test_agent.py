"""The agent as a program: killed, stopped and started again between a real runner and a stand-in scheduler."""

import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.executors.agents import CONFIGURATION, AgentProcess, processes_of
from tests.executors.scheduler_stand_in import Json, SchedulerStandIn

ALLOCATE = "dd if=/dev/zero of=/dev/null bs=100M count=1"
MEBIBYTE = 1024 * 1024

type Joined = tuple[SchedulerStandIn, AgentProcess]


@pytest.fixture
def started(agent: AgentProcess) -> AgentProcess:
    agent.start()
    return agent


def runner_of(agent: AgentProcess, report: Json) -> int:
    return int(json.loads((agent.runs / report["podName"] / "runner.json").read_text())["pid"])


def until_it_returns_leases(agent: AgentProcess) -> None:
    while b'"return"' not in agent.journal.read_bytes():
        time.sleep(0.01)


def deaf(scheduler: SchedulerStandIn, agent: AgentProcess, **spec: Any) -> str:
    """A run that takes no notice of being told to end; by now it has got as far as that."""
    ears = agent.shared / "deaf"
    run_id = scheduler.lease(f"trap '' TERM; touch {ears}; while :; do sleep 0.1; done", **spec)
    scheduler.wait_for(run_id, "running")
    while not ears.exists():
        time.sleep(0.01)
    return run_id


class TestTheWalk:
    @pytest.fixture
    def scheduler(self, joined: Joined) -> SchedulerStandIn:
        return joined[0]

    @pytest.fixture
    def started(self, joined: Joined) -> AgentProcess:
        return joined[1]

    def test_a_heartbeat_says_what_the_executor_has(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        beat = scheduler.wait_until(lambda: next(iter(scheduler.heartbeats), None))
        assert [node["name"] for node in beat["nodes"]] == ["local-1", "local-2"]
        assert beat["nodes"][0]["labels"] == {"kubernetes.io/hostname": "local-1"}
        assert beat["nodes"][0]["cpuMillicores"] == 1500
        assert beat["nodes"][0]["memoryBytes"] == 2048 * MEBIBYTE
        assert beat["categories"][0] == {"name": "oom", "disposition": "Delete"}
        assert beat["trackedNodeLabels"] == ["kubernetes.io/hostname"]
        assert "spec.containers[].command" in beat["honours"]

    def test_an_agent_that_was_heard_says_so_in_a_file(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        scheduler.wait_until(lambda: True if len(scheduler.heartbeats) > 1 else None)
        assert started.ready.exists()

    def test_a_run_is_pending_running_and_succeeded(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        run_id = scheduler.lease("echo hello")
        end = scheduler.wait_for(run_id, "succeeded")
        assert [each["state"] for each in scheduler.reports_of(run_id)] == ["pending", "running", "succeeded"]
        assert (end["node"], end["exitCode"]) == ("local-1", 0)
        assert end["output"]["head"] == "aGVsbG8K"

    def test_out_of_memory_is_reported_once_the_name_is_free(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        first = scheduler.lease(ALLOCATE, job="j1", memory_bytes=64 * MEBIBYTE)
        end = scheduler.wait_for(first, "failed")
        assert not (started.runs / "armada-j1-0").exists()
        second = scheduler.lease(ALLOCATE, job="j1", memory_bytes=128 * MEBIBYTE)
        scheduler.wait_for(second, "succeeded")
        assert (end["category"], end["reason"], end["exitCode"]) == ("oom", "OOM", 137)
        assert end["killedBy"] == "memory"
        assert end["message"].endswith("\n\nGive it more.")
        assert end["containers"][0]["reason"] == "OOMKilled"

    def test_remains_of_a_retained_category_stay_until_the_name_is_needed(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        end = scheduler.wait_for(scheduler.lease("exit 3", job="j2"), "failed")
        assert (end["category"], end["subcategory"]) == ("three", "kept")
        assert (started.runs / "armada-j2-0").exists()
        again = scheduler.wait_for(scheduler.lease("exit 0", job="j2"), "leaseReturned")
        assert again["attempted"] is True
        assert "armada-j2-0 is taken" in again["message"]
        scheduler.wait_for(scheduler.lease("exit 0", job="j2"), "succeeded")

    def test_a_deadline_is_a_failure_with_its_own_reason(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        end = scheduler.wait_for(scheduler.lease("sleep 8617", activeDeadlineSeconds=0.2), "failed")
        assert (end["category"], end["reason"], end["killedBy"]) == ("late", "DeadlineExceeded", "deadline")

    def test_a_lease_that_can_never_run_fails_with_the_built_in_category(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        end = scheduler.wait_for(scheduler.lease(containers=[{"name": "main", "image": "x"}]), "failed")
        assert (end["category"], end["subcategory"]) == ("internal", "job-creation-failed")
        assert "spec.containers[0].command is missing" in end["message"]

    def test_start_and_end_are_told_without_delay(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        scheduler.wait_for(scheduler.lease("true"), "succeeded")
        leased = time.monotonic()
        run_id = scheduler.lease("exit 4")
        end = scheduler.wait_for(run_id, "failed")
        # Generous for a busy machine; the latency benchmark holds the real figures.
        assert end["arrived"] - leased < 1.0
        assert end["ageSeconds"] < 0.5

    def test_a_stop_ends_the_run_as_cancelled(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        run_id = scheduler.lease("sleep 8617 & wait")
        scheduler.wait_for(run_id, "running")
        scheduler.stop(run_id)
        end = scheduler.wait_for(run_id, "cancelled")
        assert processes_of(run_id) == []
        assert not (started.runs / end["podName"]).exists()

    def test_a_stop_of_a_run_never_heard_of_is_cancelled_at_once(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        scheduler.stop("5d4c1d54-0000-4000-8000-000000000001")
        scheduler.wait_for("5d4c1d54-0000-4000-8000-000000000001", "cancelled")

    def test_a_run_that_should_be_at_work_here_and_of_which_nothing_is_left_has_failed(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        run_id = "5d4c1d54-0000-4000-8000-000000000002"
        scheduler.misses.add(run_id)
        end = scheduler.wait_for(run_id, "failed")
        assert (end["category"], end["subcategory"]) == ("internal", "pod-missing")

    def test_a_run_the_scheduler_has_finished_with_is_ended_and_not_reported(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        run_id = scheduler.lease("sleep 8617", terminationGracePeriodSeconds=0)
        report = scheduler.wait_for(run_id, "running")
        scheduler.forget(run_id)
        gone = started.runs / report["podName"]
        scheduler.wait_until(
            lambda: True if not gone.exists() and run_id not in scheduler.requests[-1]["runs"] else None
        )
        assert {each["state"] for each in scheduler.reports_of(run_id)} == {"pending", "running"}

    def test_the_next_run_of_a_job_that_gave_way_begins_when_the_one_before_has_ended(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        slow = "trap 'sleep 1; exit 0' TERM; sleep 8617 & wait"
        before = scheduler.lease(slow, job="preempted", terminationGracePeriodSeconds=20)
        scheduler.wait_for(before, "running")
        scheduler.forget(before)
        again = scheduler.lease("true", job="preempted")
        scheduler.wait_for(again, "succeeded")
        assert "leaseReturned" not in {each["state"] for each in scheduler.reports_of(again)}


class TestStops:
    def test_a_terminated_agent_returns_its_leases_unattempted(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        polite = scheduler.lease("trap 'echo saved; exit 1' TERM; echo on; sleep 8617 & wait")
        scheduler.wait_for(polite, "running")
        stubborn = deaf(scheduler, started, terminationGracePeriodSeconds=1)
        started.terminate()
        assert started.wait() == 0
        for run_id in (polite, stubborn):
            end = scheduler.wait_for(run_id, "leaseReturned")
            assert (end["attempted"], end["category"]) == (False, "")
            assert not (started.runs / end["podName"]).exists()

    def test_before_a_lease_goes_back_the_scheduler_knows_that_no_node_takes_another(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        run_id = scheduler.lease("sleep 8617")
        scheduler.wait_for(run_id, "running")
        assert all(node["schedulable"] for node in scheduler.heartbeats[-1]["nodes"])
        started.terminate()
        returned = scheduler.wait_for(run_id, "leaseReturned")
        closing = next(
            each for each in scheduler.heartbeats if not any(n["schedulable"] for n in each["nodes"])
        )
        assert closing["arrived"] < returned["arrived"]
        assert closing["nodes"][0]["notes"][0].startswith("The agent was stopped")
        assert started.wait() == 0
        assert not any(node["schedulable"] for node in scheduler.heartbeats[-1]["nodes"])
        before = len(scheduler.heartbeats)
        started.start()
        again = scheduler.wait_until(lambda: next(iter(scheduler.heartbeats[before:]), None))
        assert all(node["schedulable"] for node in again["nodes"])

    def test_a_lease_that_comes_while_the_agent_goes_away_is_returned_unattempted(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        slow = scheduler.lease("trap 'sleep 2; exit 0' TERM; sleep 8617 & wait")
        scheduler.wait_for(slow, "running")
        started.terminate()
        until_it_returns_leases(started)
        late = scheduler.lease("echo never")
        end = scheduler.wait_for(late, "leaseReturned")
        assert (end["attempted"], end["category"]) == (False, "")
        assert {each["state"] for each in scheduler.reports_of(late)} == {"leaseReturned"}
        assert started.wait() == 0

    def test_a_scheduler_that_does_not_answer_keeps_no_run_from_ending(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        run_id = scheduler.lease("sleep 8617")
        scheduler.wait_for(run_id, "running")
        scheduler.go(down=True)
        started.terminate()
        assert started.wait() == 0
        assert processes_of(run_id) == []

    def test_the_scheduler_hears_which_runs_are_being_stopped_and_need_not_say_it_again(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        run_id = deaf(scheduler, started)
        assert scheduler.requests[-1]["stopping"] == []
        scheduler.stop(run_id, grace_seconds=3)
        scheduler.wait_until(lambda: True if run_id in scheduler.requests[-1]["stopping"] else None)
        asked = len(scheduler.requests)
        scheduler.wait_for(run_id, "cancelled")
        assert len(scheduler.requests) - asked < 5

    def test_asked_twice_to_end_an_agent_drops_the_grace(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        run_id = deaf(scheduler, started, terminationGracePeriodSeconds=600)
        started.terminate()
        until_it_returns_leases(started)
        started.terminate()
        assert started.wait() == 0
        assert scheduler.wait_for(run_id, "leaseReturned")["attempted"] is False


class TestKilledAgents:
    def test_ten_runs_are_adopted_and_end_with_their_own_codes(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        meeting = started.folder / "go"
        wait = f"until [ -e {meeting} ]; do sleep 0.05; done"
        runs = {scheduler.lease(f"{wait}; exit {code}"): code for code in range(1, 11)}
        limited = scheduler.lease(f"{wait}; {ALLOCATE}", memory_bytes=64 * MEBIBYTE)
        for run_id in (*runs, limited):
            scheduler.wait_for(run_id, "running")
        started.kill()
        started.start()
        scheduler.wait_until(lambda: True if len(scheduler.requests[-1]["runs"]) == 11 else None)
        meeting.touch()
        for run_id, code in runs.items():
            assert scheduler.wait_for(run_id, "failed")["exitCode"] == code
        assert scheduler.wait_for(limited, "failed")["category"] == "oom"

    def test_ends_that_nobody_saw_are_reported_with_their_age(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        run_id = scheduler.lease("sleep 0.3; exit 6")
        report = scheduler.wait_for(run_id, "running")
        started.kill()
        ended = started.runs / report["podName"] / "end.json"
        while not ended.exists():
            time.sleep(0.01)
        started.start()
        end = scheduler.wait_for(run_id, "failed")
        assert end["exitCode"] == 6
        assert end["ageSeconds"] > 0.1  # no agent starts faster

    def test_a_deadline_holds_without_an_agent(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        run_id = scheduler.lease("sleep 8617", activeDeadlineSeconds=0.5)
        scheduler.wait_for(run_id, "running")
        started.kill()
        while processes_of(run_id):
            time.sleep(0.01)
        started.start()
        assert scheduler.wait_for(run_id, "failed")["category"] == "late"

    def test_a_report_the_scheduler_did_not_take_survives_the_agent(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        run_id = scheduler.lease(ALLOCATE, job="j3", memory_bytes=64 * MEBIBYTE)
        scheduler.wait_for(run_id, "pending")
        scheduler.go(down=True)
        while b"memory" not in started.journal.read_bytes():
            time.sleep(0.01)
        started.kill()
        assert not scheduler.reports_of(run_id)[1:] or scheduler.reports_of(run_id)[-1]["state"] == "running"
        scheduler.go(down=False)
        started.start()
        assert scheduler.wait_for(run_id, "failed")["category"] == "oom"
        assert not (started.runs / "armada-j3-0").exists()

    def test_runs_are_adopted_though_the_journal_was_lost(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        meeting = started.folder / "go"
        run_id = scheduler.lease(f"until [ -e {meeting} ]; do sleep 0.05; done; exit 9")
        scheduler.wait_for(run_id, "running")
        started.kill()
        started.journal.unlink()
        started.start()
        scheduler.wait_until(lambda: True if run_id in scheduler.requests[-1]["runs"] else None)
        meeting.touch()
        assert scheduler.wait_for(run_id, "failed")["exitCode"] == 9

    def test_a_lease_is_started_once_though_its_answer_is_given_twice(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        counted = started.folder / "count"
        counted.touch()
        counted.chmod(0o666)
        run_id = scheduler.lease(f"echo x >> {counted}; sleep 0.2")
        scheduler.wait_for(run_id, "pending")
        started.kill()
        started.start()
        scheduler.wait_for(run_id, "succeeded")
        assert counted.read_text() == "x\n"

    def test_a_killed_runner_is_a_failure_of_the_node_and_its_tree_ends(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        run_id = scheduler.lease("(setsid sleep 8617 &); sleep 8617")
        report = scheduler.wait_for(run_id, "running")
        os.kill(runner_of(started, report), signal.SIGKILL)
        end = scheduler.wait_for(run_id, "failed")
        assert (end["category"], end["subcategory"]) == ("internal", "node-failure")
        assert processes_of(run_id) == []
        assert not (started.runs / report["podName"]).exists()

    def test_a_reboot_is_a_failure_of_the_node(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        run_id = scheduler.lease("sleep 8617")
        report = scheduler.wait_for(run_id, "running")
        started.kill()
        os.kill(runner_of(started, report), signal.SIGKILL)
        claim = started.runs / report["podName"] / "runner.json"
        claim.write_text(claim.read_text().replace('"boot": "', '"boot": "another-'))
        started.start()
        end = scheduler.wait_for(run_id, "failed")
        assert (end["category"], end["subcategory"]) == ("internal", "node-failure")
        assert "restarted" in end["message"]

    def test_a_reboot_that_took_the_folders_along_is_a_failure_of_the_node_too(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        run_id = scheduler.lease("sleep 8617")
        report = scheduler.wait_for(run_id, "running")
        started.kill()
        os.kill(runner_of(started, report), signal.SIGKILL)
        shutil.rmtree(started.runs)
        (started.folder / "agent" / "boot").write_text("another")
        started.start()
        end = scheduler.wait_for(run_id, "failed")
        assert (end["category"], end["subcategory"]) == ("internal", "node-failure")

    def test_a_stop_that_was_under_way_goes_on_with_the_next_agent(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        run_id = deaf(scheduler, started)
        scheduler.stop(run_id, grace_seconds=3.0)
        while b'"cancel"' not in started.journal.read_bytes():
            time.sleep(0.01)
        started.kill()
        started.start()
        scheduler.wait_for(run_id, "cancelled")


class TestASchedulerInTrouble:
    def test_reports_wait_for_a_scheduler_that_is_down(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        run_id = scheduler.lease("sleep 0.2; exit 8")
        scheduler.wait_for(run_id, "running")
        scheduler.go(down=True)
        while b'"exitCode":8' not in started.journal.read_bytes():
            time.sleep(0.01)
        scheduler.go(down=False)
        assert scheduler.wait_for(run_id, "failed")["exitCode"] == 8

    def test_a_report_refused_as_malformed_does_not_hold_up_the_others(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        scheduler.refuses_malformed = lambda report: len(report["message"]) > 600
        long = scheduler.lease("head -c 3000 /dev/zero | tr '\\0' x; exit 1")
        short = scheduler.lease("exit 2")
        assert scheduler.wait_for(short, "failed")["exitCode"] == 2
        assert scheduler.wait_for(long, "failed")["exitCode"] == 1


class TestStarting:
    def test_two_agents_do_not_share_a_folder(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        scheduler.wait_until(lambda: next(iter(scheduler.heartbeats), None))
        second = AgentProcess(scheduler)
        second.folder, ours = started.folder, second.folder
        second.start()
        assert second.wait() == 2
        assert "Another agent works with the folder" in started.log.read_text()
        second.folder = ours
        second.close()

    def test_a_configuration_that_is_wrong_stops_the_start_with_every_problem(
        self, agent: AgentProcess
    ) -> None:
        agent.configure(
            CONFIGURATION
            | {
                "application": {"errorCategories": {"enabled": True, "categories": [{"name": "x"}]}},
                "local": {"nodes": 0, "memory": "lots"},
            }
        )
        agent.start()
        assert agent.wait() == 2
        log = agent.log.read_text()
        assert "application.errorCategories.categories[0]" in log
        assert "local.nodes" in log
        assert "local.memory" in log

    def test_the_journal_is_for_the_agent_only(
        self, scheduler: SchedulerStandIn, started: AgentProcess
    ) -> None:
        scheduler.wait_until(lambda: next(iter(scheduler.heartbeats), None))
        assert Path(started.journal.parent).stat().st_mode & 0o777 == 0o700
