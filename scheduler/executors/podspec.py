"""From a pod spec to what a runner starts: commands, environments, limits. What is not honoured is not read."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from policies.quantity import QuantityError, parse_bytes
from scheduler.executors.protocol import LeaseImpossibleError, PodSpec

_CONTAINER_FIELDS = (
    "name",
    "image",
    "imagePullPolicy",
    "command",
    "args",
    "workingDir",
    "env[].name",
    "env[].value",
    "resources",
    "terminationMessagePolicy",
)
HONOURS = (
    "spec.restartPolicy",
    "spec.terminationGracePeriodSeconds",
    "spec.activeDeadlineSeconds",
    *(f"spec.{kind}[].{name}" for kind in ("containers", "initContainers") for name in _CONTAINER_FIELDS),
)
"""Fields the local executor acts on. The image is accepted and ignored, which its nodes say."""

VOLUME_HONOURS = (
    "spec.volumes[].name",
    *(
        f"spec.{kind}[].volumeMounts[].{name}"
        for kind in ("containers", "initContainers")
        for name in ("name", "mountPath")
    ),
)
"""Further fields where mount paths can be had: `emptyDir` in a folder of the run."""
MEMORY_VOLUME_HONOURS = ("spec.volumes[].emptyDir.medium",)
"""And where files in memory are charged to the run."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEFAULT_GRACE_SECONDS = 30.0
_VOLUME_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_.][A-Za-z0-9_.-]*)\)")


def commands(pod_spec: PodSpec, *, surroundings: Mapping[str, str], folder: Path) -> list[dict[str, Any]]:
    """The containers in the form `run.json` has, init containers first.

    Surroundings are the environment each gets beneath its own. Raises LeaseImpossibleError with the path at fault.
    """
    kinds = (("initContainers", True), ("containers", False))
    found = [
        _command(each, f"spec.{kind}[{index}]", surroundings, folder) | {"init": init}
        for kind, init in kinds
        for index, each in enumerate(pod_spec.get(kind) or ())
    ]
    if all(each["init"] for each in found):
        raise LeaseImpossibleError("spec.containers is empty: name a container with a command.")
    return found


def volumes(pod_spec: PodSpec) -> list[dict[str, Any]]:
    """The volumes in the form `run.json` has. Raises LeaseImpossibleError."""
    found = []
    for index, volume in enumerate(pod_spec.get("volumes") or ()):
        name = str(volume.get("name") or "")
        if not _VOLUME_NAME.fullmatch(name):
            raise LeaseImpossibleError(
                f"spec.volumes[{index}].name takes lower-case letters, digits and '-'."
            )
        medium = (volume.get("emptyDir") or {}).get("medium") or ""
        if set(volume) - {"name", "emptyDir"} or medium not in ("", "Memory"):
            raise LeaseImpossibleError(
                f"spec.volumes[{index}] can only be an emptyDir, in a folder or in Memory."
            )
        found.append({"name": name, "memory": medium == "Memory"})
    return found


def grace_seconds(pod_spec: PodSpec) -> float:
    """How long a run has between being asked to end and being made to."""
    return _seconds(pod_spec, "terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS) or 0.0


def deadline_seconds(pod_spec: PodSpec) -> float | None:
    """How long a run may be active; None for ever."""
    return _seconds(pod_spec, "activeDeadlineSeconds", None)


def _seconds(pod_spec: PodSpec, name: str, default: float | None) -> float | None:
    value = pod_spec.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise LeaseImpossibleError(f"spec.{name} takes a number of seconds from 0 up.")
    return float(value)


def _command(
    container: Mapping[str, Any], path: str, surroundings: Mapping[str, str], folder: Path
) -> dict[str, Any]:
    environment = dict(surroundings)
    for entry in container.get("env") or ():
        environment[str(entry["name"])] = _expand(str(entry.get("value") or ""), environment)
    argv = [*(container.get("command") or ()), *(container.get("args") or ())]
    if not container.get("command"):
        raise LeaseImpossibleError(
            f"{path}.command is missing. This executor ignores images, so it cannot run an image's own command: "
            "write the command into the job."
        )
    argv = [_expand(str(word), environment) for word in argv]
    if any("\0" in text for text in (*argv, *environment, *environment.values())):
        raise LeaseImpossibleError(f"{path} has a NUL character in its command or environment. Remove it.")
    return {
        "name": str(container.get("name") or ""),
        "argv": argv,
        "environment": environment,
        "folder": str(container.get("workingDir") or folder),
        "memoryBytes": _memory_limit(container, path),
        "mounts": [
            _mount(each, path, index) for index, each in enumerate(container.get("volumeMounts") or ())
        ],
    }


def _mount(mount: Mapping[str, Any], path: str, index: int) -> list[str]:
    name, target = str(mount.get("name") or ""), str(mount.get("mountPath") or "")
    if not target.startswith("/") or ".." in target.split("/") or not target.strip("/"):
        raise LeaseImpossibleError(
            f"{path}.volumeMounts[{index}].mountPath takes an absolute path below '/'."
        )
    return [name, target]


def _expand(text: str, environment: Mapping[str, str]) -> str:
    """`$(NAME)` becomes the variable's value, `$$(NAME)` stays `$(NAME)`, an unknown name stays as it is."""

    def replaced(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return environment.get(match[1], match[0])

    return _REFERENCE.sub(replaced, text)


def _memory_limit(container: Mapping[str, Any], path: str) -> int:
    written = ((container.get("resources") or {}).get("limits") or {}).get("memory")
    if written is None:
        return 0
    try:
        return parse_bytes(str(written))
    except QuantityError as error:
        raise LeaseImpossibleError(f"{path}.resources.limits.memory: {error}") from error
