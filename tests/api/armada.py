"""How tests ask Armada's Lookout."""

import json
from datetime import UTC, datetime
from typing import Any

from scheduler.models import Job
from scheduler.states import RunState
from tests.api.caller import Answer, Caller
from tests.factories import make_executor, make_job, make_run


def ask(rita: Caller, what: str, body: Any) -> Answer:
    shown = {"Authorization": f"Bearer {rita.token}"} if rita.token else {}
    path, media = f"/lookout/api/v1/{what}", "application/json"
    response: Any = rita.client.post(path, json.dumps(body), content_type=media, headers=shown)
    return Answer(status=response.status_code, body=json.loads(response.content), headers=response.headers)


def listed(rita: Caller, *filters: dict[str, Any], **more: Any) -> list[str]:
    answer = ask(rita, "jobs", {"filters": list(filters), "order": None, **more})
    assert answer.status == 200
    return [job["jobId"] for job in answer.body["jobs"]]


def has(field: str, value: Any, match: str = "exact", **more: Any) -> dict[str, Any]:
    return {"field": field, "value": value, "match": match, **more}


def make_story() -> Job:
    """Failed, retried with more memory on another node, running."""
    job = make_job(
        annotations={"example.com/c": "c_1", "example.com/e": ""}, priority_class="armada-default", priority=7,
        resources={"nvidia.com/gpu": 2, "ephemeral-storage": 5},
    )  # fmt: skip
    executor = make_executor()
    make_run(job, executor=executor, state=RunState.FAILED, subcategory="limit", message="Killed")
    make_run(job, executor=executor, node="local-2")
    Job.objects.filter(id=job.id).update(state_changed_at=datetime(2019, 5, 1, tzinfo=UTC))
    return job
