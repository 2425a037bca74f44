"""What Tack reads in a policy document while it is written: problems with their lines, and a sentence per rule."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from policies.documents import DocumentInvalid, PolicyDraft, Problem, RuleDraft, read_policy
from policies.policy import Action, Policy, Rule
from policies.tree import tree_of_text
from policies.wording import default_sentence, limit_sentence, rule_sentence
from scheduler.config import Configuration
from scheduler.deployment import DeploymentCheck
from scheduler.queries.names import policy_names
from scheduler.queries.policies import deployment_check, deployment_check_of_draft


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundProblem:
    """A problem with the line it was found in, as typed."""

    problem: Problem
    excerpt: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleSentence:
    """A rule as a sentence; empty while something is wrong with the rule."""

    number: int
    sentence: str
    category: str
    subcategory: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What a document says so far."""

    policy: Policy | None = None
    problems: tuple[FoundProblem, ...] = ()
    sentences: tuple[RuleSentence, ...] = ()
    default: str = ""
    limit: str = ""
    deployment: DeploymentCheck = field(default_factory=DeploymentCheck)
    """What executors say to it; of a document with problems, to the rules that can be read."""

    @property
    def name_is_taken(self) -> bool:
        """Nothing is wrong but the name, which another policy has."""
        return {found.problem.code for found in self.problems} == {"taken"}

    @property
    def is_right(self) -> bool:
        """It can be published, by force if need be."""
        return self.policy is not None


def read_document(text: str, *, name: str | None, config: Configuration) -> Reading:
    """Read a document as far as it can be read. `name` is that of the policy being edited, None for a new one."""
    try:
        draft = read_policy(tree_of_text(text), envelope_required=True)
    except DocumentInvalid as error:
        return Reading(problems=tuple(_found(text, error.problems)))
    problems = [*draft.problems, *_renamed(draft, name), *_taken(draft, name)]
    policy = None if problems else draft.policy()
    return Reading(
        policy=policy,
        problems=tuple(_found(text, problems)),
        sentences=tuple(_sentences(draft.rules, problems)),
        default=default_sentence(draft.default_action) if draft.default_action else "",
        limit=""
        if any(problem.path == "retryLimit" for problem in problems)
        else limit_sentence(draft.retry_limit),
        deployment=deployment_check(policy, config=config)
        if policy
        else deployment_check_of_draft(draft, config=config),
    )


def sentences_of(policy: Policy) -> list[RuleSentence]:
    """The rules of a published policy."""
    return [_sentence(number, rule) for number, rule in enumerate(policy.rules, start=1)]


def _sentences(drafts: Sequence[RuleDraft], problems: Sequence[Problem]) -> Iterator[RuleSentence]:
    for number, draft in enumerate(drafts, start=1):
        is_wrong = any(problem.path.startswith(f"rules[{number - 1}]") for problem in problems)
        if is_wrong or draft.action is None:
            yield RuleSentence(
                number=number, sentence="", category=draft.on_category, subcategory=draft.on_subcategory
            )
        else:
            yield _sentence(number, _rule(draft, draft.action))


def _sentence(number: int, rule: Rule) -> RuleSentence:
    return RuleSentence(
        number=number,
        sentence=rule_sentence(rule),
        category=rule.on_category,
        subcategory=rule.on_subcategory,
    )


def _rule(draft: RuleDraft, action: Action) -> Rule:
    return Rule(
        action=action,
        on_category=draft.on_category,
        on_subcategory=draft.on_subcategory,
        mutation=draft.mutation,
    )


def _renamed(draft: PolicyDraft, name: str | None) -> list[Problem]:
    if name is None or draft.name in ("", name):
        return []
    message = f"This is policy '{name}'. A policy keeps its name; write a new one to use another."
    return [Problem(path="name", message=message, code="renamed")]


def _taken(draft: PolicyDraft, name: str | None) -> list[Problem]:
    if name is not None or draft.name not in policy_names():
        return []
    message = f"Retry policy '{draft.name}' exists already. Choose another name, or edit that policy."
    return [Problem(path="name", message=message, code="taken")]


def _found(text: str, problems: Sequence[Problem]) -> Iterator[FoundProblem]:
    lines = text.splitlines()
    for given in problems:
        problem = replace(given, line=None) if _is_absent(given, lines) else given
        known = problem.line is not None and 0 < problem.line <= len(lines)
        yield FoundProblem(problem=problem, excerpt=lines[(problem.line or 1) - 1] if known else "")


def _is_absent(problem: Problem, lines: Sequence[str]) -> bool:
    """A field of the document itself that is not there has no line; the reader gives that of the document."""
    if problem.line is None or not problem.path.isidentifier():
        return False
    return problem.path not in "".join(lines[problem.line - 1 : problem.line])
