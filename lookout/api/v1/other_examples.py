"""Examples of what is no list of the history: a job file and its answer, events, output."""

import json

from lookout.api.v1.examples import JOB_ID
from lookout.api.v1.job_views import SubmittedList, SubmittedView

JOB_FILE = {
    "queue": "nightly",
    "jobSetId": "report/2026-11-29",
    "jobs": [
        {
            "clientId": "report-7",
            "annotations": {"example.com/team": "render"},
            "podSpec": {
                "restartPolicy": "Never",
                "containers": [
                    {
                        "name": "writer",
                        "command": ["./report"],
                        "resources": {
                            "requests": {"cpu": "100m", "memory": "64Mi"},
                            "limits": {"cpu": "100m", "memory": "64Mi"},
                        },
                    }
                ],
            },
        }
    ],
}
SUBMITTED = SubmittedList(jobs=(SubmittedView(job_id=JOB_ID, client_id="report-7", created=True),))
OUTPUT = "reading 7 parts\nwriting 100Mi into memory\n[12,345 bytes were not kept]\ndone\n"
_TOLD = {
    "jobId": JOB_ID,
    "jobSetId": "report/2026-11-29",
    "queue": "nightly",
    "created": "2026-11-29T14:27:59.700412Z",
}
EVENTS = {"events": [{"id": 9, "message": {"running": _TOLD}}], "last": 9}
EVENT_STREAM = f"retry: 500\n\nid: 9\ndata: {json.dumps({'running': _TOLD})}\n\n"
