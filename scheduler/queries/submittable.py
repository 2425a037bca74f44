"""Whether a job file may be submitted: by whom, to which queue, and what the fleet and the settings say to it."""

from collections.abc import Sequence

from policies.fields import suggestion
from scheduler.actors import Actor, NotPermitted, Permission, QueueVerb
from scheduler.config import Configuration
from scheduler.configured import configuration
from scheduler.errors import NotFound
from scheduler.fields import problem_of_line
from scheduler.jobfile import JobFile, JobItem, read_job_file
from scheduler.models import Queue
from scheduler.queries.rejections import fields_nobody_honours
from scheduler.spelling import Problems, spelled


def check_job_file(
    document: object, *, actor: Actor, config: Configuration | None = None, honoured: bool = False
) -> JobFile:
    """The job file of an object that was read from YAML or JSON, if the actor may submit it. Writes nothing.

    With `honoured`, fields that no executor heard of acts on are problems too: a job with one would be rejected.
    Everything wrong is told at once, in DocumentInvalid, or in NotFound where there is no such queue. Raises
    NotPermitted before: who may not submit is not told what is wrong.
    """
    config = config or configuration()
    problems = Problems()
    strange = _strange_queue(document, actor, problems)
    file = read_job_file(document, problems)
    if file is not None:
        note_strange_classes(file.items, config, problems)
        if honoured:
            _note_unhonoured(file.items, config, problems)
    if strange:
        raise NotFound("queue", strange, problems=problems.found)
    problems.raise_any()
    assert file is not None
    return file


def require_submit(queue: Queue | None, name: str, *, actor: Actor) -> Queue:
    """The queue, if it exists and the actor may submit to it."""
    if queue is None:
        raise NotFound("queue", name)
    if not queue.allows(actor, QueueVerb.SUBMIT):
        actor.require(Permission.SUBMIT_ANY_JOBS)
    return queue


def note_strange_classes(items: Sequence[JobItem], config: Configuration, problems: Problems) -> None:
    """Note each priority class that is not configured."""
    for index, item in enumerate(items):
        if not config.class_of(item.pod.priority_class):
            problems.add(
                f"jobs[{index}].podSpec.priorityClassName",
                f"There is no priority class '{item.pod.priority_class}'. "
                f"Choose one of {', '.join(config.priority_classes)}, or leave it out.",
            )


def _strange_queue(document: object, actor: Actor, problems: Problems) -> str:
    """The queue that is named and does not exist; it is noted. Raises NotPermitted, and NotFound to who may nowhere."""
    name = spelled(document, "queue")
    if not isinstance(name, str) or not name or problem_of_line(name, most=63):
        if not _may_somewhere(actor):
            raise NotPermitted(actor, Permission.SUBMIT_ANY_JOBS)
        return ""
    queue = Queue.objects.filter(name=name).first()
    if queue is not None or not _may_somewhere(actor):
        require_submit(queue, name, actor=actor)
        return ""
    names = Queue.objects.values_list("name", flat=True)
    meant = suggestion(name, names) or " Create it, or name one that exists."
    problems.add("queue", f"There is no queue '{name}'.{meant}", "not_found")
    return name


def _may_somewhere(actor: Actor) -> bool:
    return Permission.SUBMIT_ANY_JOBS in actor.permissions or any(
        queue.allows(actor, QueueVerb.SUBMIT) for queue in Queue.objects.all()
    )


def _note_unhonoured(items: Sequence[JobItem], config: Configuration, problems: Problems) -> None:
    """Note fields that no executor acts on, but for those that are problems already."""
    known = {problem.path for problem in problems.found}
    specs = [item.pod.spec for item in items]
    for index, paths in enumerate(fields_nobody_honours(specs, config=config)):
        for path in paths:
            at = f"jobs[{index}].podSpec{path.removeprefix('spec')}"
            if not any(at == each or at.startswith((f"{each}.", f"{each}[")) for each in known):
                message = "No executor acts on this: the job would be rejected. Leave it out."
                problems.add(at, message, "not_honoured")
