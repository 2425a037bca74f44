"""One answer of each address of the history, for its description: values of the shapes that are answered."""

import dataclasses
from datetime import UTC, datetime
from uuid import UUID

from lookout.api.lists import TotalView
from lookout.api.v1.job_views import (
    FailureView,
    JobDetailView,
    JobList,
    JobView,
    LastRunView,
    ResourcesView,
)
from lookout.api.v1.run_views import (
    Budget,
    BudgetChange,
    ContainerView,
    DecisionList,
    DecisionView,
    RunErrorView,
    RunList,
    RunView,
)
from lookout.api.v1.statistic_views import (
    FailureDayList,
    FailureDayView,
    FailureExampleView,
    FailureGroupList,
    FailureGroupView,
    HeatMapView,
    HeatRowView,
    JobGroupList,
    JobGroupView,
    OtherRowsView,
    RetryStatistics,
    RuleRetriesView,
    SucceededAfter,
)
from policies.decision import Verdict
from scheduler.states import JobState, RunState

MEBI = 1024**2
JOB_ID = "01m8kv97rd4xeyzbnnzd9ygah7"
RUN_ID = UUID("b16807ef-e3a4-404d-8ff2-ed64f971fd5d")
_CURSOR = (
    "1PTfrKBy0mVbDwRVWyIyMDI2LTExLTI5VDE0OjI3OjU4LjM0OTMzMyswMDowMCIsIjAxbThrdjk3cmQ0eGV5emJubnpkOXlnYWg3Il0"
)


def _at(second: int, micro: int = 0) -> datetime:
    return datetime(2026, 11, 29, 14, 27, second, micro, tzinfo=UTC)


DECISION = DecisionView(
    run_id=RUN_ID,
    job_id=JOB_ID,
    policy="oom-grow",
    version=1,
    rule_index=0,
    verdict=Verdict.RETRY,
    reason="matched rule: Retry",
    sentence="Rule 1 of oom-grow (version 1) matched category oom: retry 1 of 2, memory 64Mi → 128Mi.",
    policy_budget=BudgetChange(before=Budget(used=0, limit=2), after=Budget(used=1, limit=2)),
    global_budget=BudgetChange(before=Budget(used=0, limit=5), after=Budget(used=1, limit=5)),
    memory_from_bytes=64 * MEBI,
    memory_to_bytes=128 * MEBI,
    avoids_nodes=(),
    decided_at=_at(59, 540_751),
)
RUN = RunView(
    run_id=RUN_ID,
    job_id=JOB_ID,
    queue="nightly",
    job_set_id="report/2026-11-29",
    number=1,
    executor="local",
    node="local-1",
    pool="default",
    state=RunState.FAILED,
    leased_at=_at(58, 401_220),
    pending_at=_at(58, 433_018),
    started_at=_at(58, 470_555),
    ended_at=_at(59, 512_400),
    exit_code=137,
    signal=None,
    category="oom",
    subcategory="",
    fingerprint="4d0f8c1be0a94b52a1f3b2d6c7e8f901",
    core_seconds=0.104,
    retryable=True,
    memory_request_bytes=64 * MEBI,
    memory_limit_bytes=64 * MEBI,
    memory_peak_bytes=64 * MEBI,
    killed_by="memory",
    enforced_by="cgroup2",
    error=RunErrorView(
        message="Container writer failed with exit code 137 because OOMKilled: writing 100Mi into memory\n",
        reason="OOM",
        containers=(
            ContainerView(
                name="writer",
                exit_code=137,
                reason="OOMKilled",
                message="writing 100Mi into memory",
                is_init=False,
            ),
        ),
        warnings=(),
    ),
    undecided_because="",
    undecided_sentence="",
    decision=DECISION,
)
SECOND_RUN = dataclasses.replace(
    RUN,
    run_id=UUID("4f1c2e0a-3c1b-4c8e-9b0e-5f5b1d0f9a11"),
    number=2,
    node="local-2",
    state=RunState.RUNNING,
    leased_at=_at(59, 611_870),
    pending_at=_at(59, 640_113),
    started_at=_at(59, 700_412),
    ended_at=None,
    exit_code=None,
    category="",
    fingerprint="",
    core_seconds=0.0,
    retryable=None,
    memory_request_bytes=128 * MEBI,
    memory_limit_bytes=128 * MEBI,
    memory_peak_bytes=None,
    killed_by="",
    error=None,
    decision=None,
)
JOB = JobView(
    job_id=JOB_ID,
    client_id="report-7",
    queue="nightly",
    job_set_id="report/2026-11-29",
    owner="alice",
    namespace="default",
    priority=0,
    priority_class="armada-default",
    gang_id="",
    state=JobState.RUNNING,
    state_changed_at=_at(59, 700_412),
    submitted_at=_at(58, 349_333),
    ended_at=None,
    cancel_user="",
    cancel_reason="",
    preempt_user="",
    preempt_reason="",
    rejected_because="",
    annotations={"example.com/team": "render"},
    labels={},
    run_count=2,
    resources=ResourcesView(
        cpu_millicores=100, memory_request_bytes=128 * MEBI, memory_limit_bytes=128 * MEBI, others={}
    ),
    submitted_memory_bytes=64 * MEBI,
    avoided_nodes=(),
    waiting_because="",
    last_failure=FailureView(category="oom", subcategory=""),
    last_verdict="retry",
    last_run=LastRunView(
        run_id=SECOND_RUN.run_id,
        state=SECOND_RUN.state,
        executor=SECOND_RUN.executor,
        node=SECOND_RUN.node,
        pool=SECOND_RUN.pool,
        started_at=SECOND_RUN.started_at,
        ended_at=SECOND_RUN.ended_at,
        exit_code=SECOND_RUN.exit_code,
    ),
)
JOB_DETAIL = JobDetailView(
    **{field.name: getattr(JOB, field.name) for field in dataclasses.fields(JOB)},
    spec={
        "containers": [
            {
                "name": "writer",
                "image": "busybox:1.36",
                "command": ["sh", "-c", "head -c 100M /dev/zero | tail -c 1"],
                "resources": {"limits": {"cpu": "100m", "memory": "64Mi"}},
            }
        ]
    },
    runs=(RUN, SECOND_RUN),
)
JOBS = JobList(jobs=(JOB,), next=_CURSOR, total=TotalView(count=10_412, is_exact=False))
RUNS = RunList(runs=(RUN, SECOND_RUN), next=None)
DECISIONS = DecisionList(decisions=(DECISION,), next=None, total=TotalView(count=1, is_exact=True))
JOB_GROUPS = JobGroupList(
    groups=(
        JobGroupView(
            keys={"category": "oom", "node": "gpu-07"},
            jobs=312,
            states={"failed": 310, "running": 2},
            first_submitted_at=_at(2, 120_874),
            last_submitted_at=_at(40, 4_411),
            last_changed_at=_at(59, 731_902),
            average_changed_at=_at(31, 550_621),
            average_seconds=482.7,
        ),
    ),
    more=True,
)
HEAT_MAP = HeatMapView(
    categories=("oom", "disk"),
    rows=(
        HeatRowView(
            name="gpu-07", executor="west", failures=41, core_seconds=90_210.5, by_category={"disk": 40, "oom": 1}
        ),
    ),
    others=OtherRowsView(
        rows=311, failures=977, core_seconds=1_204_411.0, by_category={"oom": 951, "disk": 26}
    ),
)  # fmt: skip
FAILURE_GROUPS = FailureGroupList(
    groups=(
        FailureGroupView(
            fingerprint=RUN.fingerprint,
            failures=951,
            first_recorded_at=_at(2, 310_077),
            last_recorded_at=_at(59, 512_400),
            queues={"nightly": 940, "adhoc": 11},
            queue_count=2,
            nodes={"local-1": 520, "local-2": 431},
            node_count=2,
            example=FailureExampleView(
                run_id=RUN_ID,
                job_id=JOB_ID,
                category="oom",
                subcategory="",
                exit_code=137,
                message="Container writer failed with exit code 137 because OOMKilled: writing 100Mi into memory\n",
            ),
        ),
    ),
    more=False,
)
FAILURE_DAYS = FailureDayList(
    days=(
        FailureDayView(
            day=datetime(2026, 11, 29, tzinfo=UTC), category="oom", subcategory="", failures=951, core_seconds=1_204.5
        ),
    )
)  # fmt: skip
RETRIES = RetryStatistics(
    rules=(
        RuleRetriesView(
            policy="oom-grow",
            rule_index=0,
            granted=951,
            verdicts={"retry": 951, "fail_policy_limit": 40},
            succeeded=880,
            succeeded_after=(SucceededAfter(retries=1, jobs=802), SucceededAfter(retries=2, jobs=78)),
            failed_again=60,
            cancelled=3,
            failed_core_hours=11.4,
        ),
    )
)
