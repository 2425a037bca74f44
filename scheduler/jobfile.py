"""Job files: a queue, a job set and jobs with their pod specs, in the model's format, checked wholly before use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.fields import Fields, problem_of_line
from scheduler.gangs import ALONE, Member, Membership, check_gangs, read_membership
from scheduler.podspec import NAME, NAME_SAYS, POD_SHAPE, Pod, read_pod, text_map
from scheduler.spelling import FREE, Problems, Shape, below, plain_copy, spelled

MAX_JOBS = 10_000
"""Jobs in one submission."""
MAX_JOB_SET_BYTES = 1_024
"""Of the name of a job set in UTF-8: an index holds it."""
MAX_CLIENT_ID_LENGTH = 100
MAX_ANNOTATION_LENGTH = 65_536
"""Of one, and of all of a job together: lists show them, a thousand jobs at a time."""

_JOB_SHAPE: Shape = {
    "priority": FREE,
    "namespace": FREE,
    "clientId": FREE,
    "labels": FREE,
    "annotations": FREE,
    "podSpec": POD_SHAPE,
    "podSpecs": POD_SHAPE,
    "ingress": FREE,
    "services": FREE,
    "scheduler": FREE,
    "requiredNodeLabels": FREE,
}
FILE_SHAPE: Shape = {"queue": FREE, "jobSetId": FREE, "jobs": _JOB_SHAPE}

_ABSENT = {
    "ingress": "ingress is not supported. Remove it.",
    "services": "services is not supported. Remove it.",
    "scheduler": "scheduler is not supported: there is one scheduler. Remove it.",
    "requiredNodeLabels": "requiredNodeLabels is not supported. Use podSpec.nodeSelector.",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class JobItem:
    """One job to submit."""

    pod: Pod
    priority: int = 0
    """Smaller goes first."""
    namespace: str = "default"
    client_id: str = ""
    """A second submission with the same one answers with the first job; empty for none."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    gang: Membership = ALONE


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFile:
    """What a job file asks for."""

    queue: str
    job_set: str
    items: tuple[JobItem, ...]


def parse_job_file(document: object) -> JobFile:
    """The job file of an object that was read from YAML or JSON.

    Raises DocumentInvalid with every problem and its path, such as
    `jobs[0].podSpec.containers[0].resources.limits.memory`.
    """
    problems = Problems()
    file = read_job_file(document, problems)
    problems.raise_any()
    assert file is not None
    return file


def read_job_file(document: object, problems: Problems) -> JobFile | None:
    """As far as it can be read, every problem noted; None where nothing can be read of it.

    Raises DocumentInvalid for what is nested too deep or holds too many values.
    """
    sent = spelled(document, "jobs")
    if isinstance(sent, list) and len(sent) > MAX_JOBS:  # said before all of them are looked at
        problems.add("jobs", f"Has {len(sent):,} elements; at most {MAX_JOBS:,} are allowed.", "too_large")
        return None
    known = len(problems.found)
    plain = plain_copy(document, FILE_SHAPE, problems)
    if len(problems.found) > known:
        return None
    file = Fields(plain if plain is not None else {}, "", problems)
    queue = file.text("queue", most=63, required=True)
    job_set = file.text("jobSetId", most=MAX_JOB_SET_BYTES, required=True)
    if len(job_set.encode()) > MAX_JOB_SET_BYTES:
        file.note("jobSetId", f"Has more than {MAX_JOB_SET_BYTES:,} bytes. Shorten it.")
    jobs = file.each("jobs", most=MAX_JOBS, required=True)
    items = tuple(_read_job(value, path, problems) for path, value in jobs)
    _check_gangs(items, problems)
    file.refuse_unknown()
    return JobFile(queue=queue, job_set=job_set, items=items)


def _check_gangs(items: Sequence[JobItem], problems: Problems) -> None:
    check_gangs(
        [
            Member(path=below("jobs", index), gang=item.gang, priority_class=item.pod.priority_class)
            for index, item in enumerate(items)
            if item.gang is not ALONE
        ],
        problems,
    )


def _read_job(value: object, path: str, problems: Problems) -> JobItem:
    job = Fields(value, path, problems)
    job.refuse(_ABSENT)
    annotations = _read_annotations(job)
    item = JobItem(
        pod=_read_pod_of(job),
        priority=job.whole("priority"),
        namespace=job.text("namespace", most=63, pattern=NAME, says=NAME_SAYS) or "default",
        client_id=job.text("clientId", most=MAX_CLIENT_ID_LENGTH),
        labels=text_map(job, "labels", longest=63),
        annotations=annotations,
        gang=read_membership(annotations, below(path, "annotations"), problems),
    )
    job.refuse_unknown()
    return item


def _read_pod_of(job: Fields) -> Pod:
    one = job.take("podSpec")
    several = job.each("podSpecs", most=MAX_JOBS)
    if one is not None and several:
        job.note("podSpecs", "podSpec is there too. Keep one of them.", "duplicate")
    elif one is None and not several:
        job.note("podSpec", "Is required.", "required")
    elif len(several) > 1:
        job.note("podSpecs", f"A job has exactly one pod; there are {len(several)}. Submit a job for each.")
    else:
        path, spec = (below(job.path, "podSpec"), one) if one is not None else several[0]
        if isinstance(spec, dict):
            return read_pod(spec, path, job.problems)
        Fields(spec, path, job.problems)
    return Pod(spec={})


def _read_annotations(job: Fields) -> dict[str, str]:
    """Texts of any shape, line breaks included."""
    found = {}
    for key, value in job.entries("annotations", most=256).items():
        path = below(below(job.path, "annotations"), key)
        if not key or problem_of_line(key, most=317):
            job.problems.add(path, "A key is a line of 1 to 317 characters.")
        elif not isinstance(value, str) or len(value) > MAX_ANNOTATION_LENGTH:
            job.problems.add(
                path, f"Takes text of at most {MAX_ANNOTATION_LENGTH:,} characters. Quote it.", "type"
            )
        else:
            found[key] = value
    if sum(len(key) + len(value) for key, value in found.items()) > MAX_ANNOTATION_LENGTH:
        message = f"Hold more than {MAX_ANNOTATION_LENGTH:,} characters together. Put data elsewhere."
        job.note("annotations", message, "too_large")
    return found
