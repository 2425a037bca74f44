"""Job files of benchmarks: one shell script, little memory."""

from typing import Any

SUCCEEDS = "true"
RUNS_OUT_OF_MEMORY = "dd if=/dev/zero bs=67108864 count=1 | { sleep 1; cat > /dev/null; }"


def job_file(*, queue: str, job_set: str, script: str) -> dict[str, Any]:
    """One job of 32Mi that runs the script."""
    amounts = {"cpu": "100m", "memory": "32Mi"}
    container = {
        "name": "main",
        "command": ["/bin/sh", "-c", script],
        "resources": {"requests": amounts, "limits": amounts},
    }
    pod_spec = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    job = {"priority": 0, "namespace": "default", "podSpec": pod_spec}
    return {"queue": queue, "jobSetId": job_set, "jobs": [job]}
