"""Whether executors can do what a policy asks: know its categories, delete their remains, track the node label."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from policies.failures import INTERNAL, Disposition
from policies.policy import Action, Policy, Rule
from policies.problems import Problem


@dataclass(frozen=True, kw_only=True, slots=True)
class HeardExecutor:
    """What an executor said of itself in its last heartbeat."""

    name: str
    categories: Mapping[str, Disposition]
    tracked_node_labels: frozenset[str]
    unlabelled_nodes: int = 0
    """Nodes of it that lack the node id label, whatever it tracks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeploymentCheck:
    """What stands between a policy and the executors."""

    problems: tuple[Problem, ...] = ()
    """Why it is not written, unless by force."""
    warnings: tuple[Problem, ...] = ()
    """What its author should know all the same."""


def check_deployment(
    policy: Policy, executors: Sequence[HeardExecutor], *, node_id_label: str
) -> DeploymentCheck:
    """Look for categories nobody knows or somebody retains, and for a node label nobody tracks.

    Remains that are retained hold the name of the next run; those of a failure without a category always are.
    With no executor heard of nothing is known, and everything is a warning.
    """
    problems = [
        problem for index, rule in enumerate(policy.rules) for problem in _of_rule(index, rule, executors)
    ]
    problems += _of_default(policy, executors)
    avoiding = [f"rules[{index}]" for index, rule in enumerate(policy.rules) if rule.mutation.avoid_same_node]
    tracking = [executor.name for executor in executors if node_id_label in executor.tracked_node_labels]
    if avoiding and not tracking:
        problems += [_untracked(path, node_id_label) for path in avoiding]
    if not executors:
        return DeploymentCheck(warnings=tuple(_unheard(problems)))
    warnings = [
        problem for path in avoiding if tracking for problem in _unavoidable(path, node_id_label, executors)
    ]
    return DeploymentCheck(
        problems=tuple(problems), warnings=(*_perhaps_without_category(policy, executors), *warnings)
    )


def _of_rule(index: int, rule: Rule, executors: Sequence[HeardExecutor]) -> list[Problem]:
    path = f"rules[{index}].onCategory"
    if rule.on_category == INTERNAL:
        return []
    if not any(rule.on_category in executor.categories for executor in executors):
        known = sorted({name for executor in executors for name in executor.categories})
        message = (
            f"No executor knows the category '{rule.on_category}', so the rule would never match. "
            f"Known are {_listed([*known, INTERNAL])}. Correct it, or write the policy by force and add the "
            "category to application.errorCategories."
        )
        return [Problem(path=path, message=message, code="category_unknown")]
    retaining = _retaining(rule.on_category, executors) if rule.action is Action.RETRY else []
    return [_retained(path, rule.on_category, retaining)] if retaining else []


def _of_default(policy: Policy, executors: Sequence[HeardExecutor]) -> list[Problem]:
    """Categories that reach a default Retry because no rule takes all of them first."""
    if policy.default_action is not Action.RETRY:
        return []
    taken = {rule.on_category for rule in policy.rules if not rule.on_subcategory}
    left = sorted({name for executor in executors for name in executor.categories} - taken)
    found = [(name, _retaining(name, executors)) for name in left]
    told = [_retained("defaultAction", name, retaining) for name, retaining in found if retaining]
    lacking = sorted(executor.name for executor in executors if not _retains_some(executor))
    return [*told, _without_category(lacking)] if lacking or not executors else told


def _perhaps_without_category(policy: Policy, executors: Sequence[HeardExecutor]) -> list[Problem]:
    """Where a default category may catch what no rule recognises, or may not: it is not told apart from others."""
    perhaps = sorted(executor.name for executor in executors if _retains_some(executor))
    return [_without_category(perhaps)] if perhaps and policy.default_action is Action.RETRY else []


def _retains_some(executor: HeardExecutor) -> bool:
    """An executor with a default category retains it, so without a retained one it has none."""
    return Disposition.RETAIN in executor.categories.values()


def _without_category(executors: Sequence[str]) -> Problem:
    message = (
        f"{_executors(executors)} the remains of a run whose failure has no category, which then hold the name of "
        "the next run. Give such failures a category with the action Delete there and let a rule retry it, or "
        "write the policy by force."
    )
    return Problem(path="defaultAction", message=message, code="no_category_retained")


def _retaining(category: str, executors: Iterable[HeardExecutor]) -> list[str]:
    return sorted(
        executor.name for executor in executors if executor.categories.get(category) is Disposition.RETAIN
    )


def _retained(path: str, category: str, executors: Sequence[str]) -> Problem:
    message = (
        f"{_executors(executors)} the remains of a run that ends in category '{category}', which then hold the "
        "name of the next run. Give the category the action Delete there (a defaultCategory is always retained: "
        "take another for it), or let this policy not retry it."
    )
    return Problem(path=path, message=message, code="category_retained")


def _executors(names: Sequence[str]) -> str:
    return f"Executor {_quoted(names)} retains" if len(names) == 1 else f"Executors {_quoted(names)} retain"


def _untracked(path: str, label: str) -> Problem:
    message = (
        f"No executor tracks the node label '{label}', so no node could be avoided. "
        f"Add it to kubernetes.trackedNodeLabels of the executors, or leave avoidSameNode out."
    )
    return Problem(path=f"{path}.mutate.affinity.avoidSameNode", message=message, code="label_untracked")


def _unavoidable(path: str, label: str, executors: Sequence[HeardExecutor]) -> list[Problem]:
    """Executors some of whose nodes cannot be avoided, though others' can."""
    blind = sorted(each.name for each in executors if label not in each.tracked_node_labels)
    messages = [unlabelled_sentence(each, label) for each in executors if each.name not in blind]
    if blind:
        messages.insert(
            0, f"Nodes of {_quoted(blind)} cannot be avoided: the node label '{label}' is not tracked there."
        )
    where = f"{path}.mutate.affinity.avoidSameNode"
    return [Problem(path=where, message=message, code="label_untracked") for message in messages if message]


def unlabelled_sentence(executor: HeardExecutor, label: str) -> str:
    """Of an executor with nodes that lack the node id label; empty where there are none."""
    if not executor.unlabelled_nodes:
        return ""
    one = executor.unlabelled_nodes == 1
    return (
        f"{executor.unlabelled_nodes} {'node' if one else 'nodes'} of executor '{executor.name}' "
        f"{'lacks' if one else 'lack'} the label '{label}', so avoidSameNode cannot keep jobs away from "
        f"{'it' if one else 'them'}. Label {'it' if one else 'them'}, and have the executor track the label."
    )


def _unheard(problems: Iterable[Problem]) -> list[Problem]:
    paths = dict.fromkeys(problem.path for problem in problems)
    message = "No executor has been heard of yet, so nobody knows whether this can work."
    return [Problem(path=path, message=message, code="no_executor") for path in paths]


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (" and others" if len(names) > 20 else "")
