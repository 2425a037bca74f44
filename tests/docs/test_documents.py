"""What the pages say can be used as it stands: examples are read, links lead somewhere, commands exist."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from lookout.cli.main import tack
from policies.documents import parse_policy_document, policy_document
from scheduler.agent.config import agent_configuration_from
from scheduler.config import configuration_from
from scheduler.jobfile import parse_job_file
from scheduler.queuefile import parse_queue
from tests.docs.reading import CHECKOUT, DOCS, Block, anchors, blocks, links, pages, prose, text_of

PROGRAMS = {
    "up": "lookout/embedded/__main__.py",
    "agent": "scheduler/agent/__main__.py",
    "demo": "lookout/story/__main__.py",
    "person": "lookout/management/commands/person.py",
    "retention": "lookout/management/commands/retention.py",
    "token": "lookout/management/commands/token.py",
    "manage": "",
    "bench": "tests/benchmarks/__main__.py",
    "test": "",
}
"""Words of ./tack that are programs of their own, and where their options are."""


def _read(document: Any, text: str) -> str:
    """What an example is, once the code that would read it has read it."""
    if document.get("kind") == "RetryPolicy":
        parse_policy_document(text)
        return "policy"
    if document.get("kind") == "Queue":
        parse_queue(document)
        return "queue"
    if "jobs" in document:
        parse_job_file(document)
        return "job file"
    assert set(document) <= {
        "scheduling", "executorTimeout", "application", "kubernetes", "local", "task"
    }, "an example of nothing Tack reads"  # fmt: skip
    configuration_from(document)
    agent_configuration_from(document)
    return "configuration"


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_an_example_in_yaml_is_read_by_the_code_that_would_read_it(block: Block) -> None:
    assert _read(yaml.safe_load(block.text), block.text)


def test_there_are_examples_of_everything_that_is_written_in_yaml() -> None:
    kinds = {_read(yaml.safe_load(block.text), block.text) for block in blocks("yaml")}
    assert kinds == {"policy", "queue", "job file", "configuration"}


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_an_example_in_json_is_json(block: Block) -> None:
    json.loads(block.text)


def test_the_files_that_pages_quote_are_quoted_as_they_are() -> None:
    policy = (CHECKOUT / "lookout/story/policy.yaml").read_text()
    assert policy in text_of(DOCS / "tutorial/out-of-memory.md")
    written = yaml.safe_load((CHECKOUT / "lookout/embedded/tack.yaml").read_text())
    quoted = [block for block in blocks("yaml") if block.page == "docs/reference/configuration.md"]
    assert yaml.safe_load(quoted[0].text) == written


def test_the_policy_shown_over_rest_is_the_one_of_the_story() -> None:
    policy = parse_policy_document((CHECKOUT / "lookout/story/policy.yaml").read_text())
    shown = [json.loads(block.text) for block in blocks("json") if '"policy": {' in block.text]
    assert [each["policy"] for each in shown] == [policy_document(policy)]


@pytest.mark.parametrize("document", pages(), ids=lambda each: each.name)
def test_links_lead_somewhere(document: Path) -> None:
    lost = []
    for link in links(document):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = (document.parent / name).resolve() if name else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert lost == []


def test_every_page_is_reached_from_the_index() -> None:
    index = DOCS / "README.md"
    reached = {(index.parent / link).resolve() for link in links(index)}
    assert {page for page in DOCS.rglob("*.md") if page != index} <= reached


def _lines_of_commands() -> Iterator[tuple[str, list[str]]]:
    """Everything on the pages that one would type and that begins with tack, with the place it is at."""
    for block in blocks():
        if block.language in ("sh", ""):
            joined = re.sub(r"\\\n\s*", "", block.text)
            for found in re.finditer(
                r"^(?:\$ |.*\| )?(?:[A-Z_]+=\S* )*(?:\./)?tack (.*)$", joined, re.MULTILINE
            ):
                yield str(block), shlex.split(found[1].split(" | ")[0], comments=True)
    for page in pages():
        for code in re.findall(r"`(?:\./)?tack ([^`\n]*)`", prose(page)):
            yield page.name, shlex.split(code)


def test_commands_on_the_pages_exist_with_their_options() -> None:
    found = list(_lines_of_commands())
    wrong = [(place, words) for place, words in found if words and not _exists(words)]
    assert wrong == []
    assert len(found) > 40, "the commands were not found"


def _exists(words: list[str]) -> bool:
    if words[0] in PROGRAMS:
        source = _source_of_options(words)
        return all(word in source for word in words if word.startswith("--"))
    command: click.Command = tack
    options = {name for parameter in tack.params for name in parameter.opts} | {"--help"}
    for word in words:
        if isinstance(command, click.Group) and word in command.commands:
            command = command.commands[word]
            options |= {name for parameter in command.params for name in parameter.opts}
        elif word.startswith("--") and word not in options:
            return False
    return words[0].startswith("-") or words[0].isupper() or command is not tack


def _source_of_options(words: list[str]) -> str:
    """The program that reads them; each benchmark has a file of its own."""
    own = CHECKOUT / "tests/benchmarks" / f"{words[1]}.py" if words[0] == "bench" and words[1:] else None
    if own is not None and own.exists():
        return own.read_text()
    return (CHECKOUT / PROGRAMS[words[0]]).read_text() if PROGRAMS[words[0]] else "--"


OF_A_MACHINE = re.compile(r"/(?:root|home|work|Users)/|\bissue #?\d|pypi\.org|:8300\b", re.IGNORECASE)


@pytest.mark.parametrize("document", pages(), ids=lambda each: each.name)
def test_pages_speak_of_the_product_only(document: Path) -> None:
    assert OF_A_MACHINE.findall(text_of(document)) == []
