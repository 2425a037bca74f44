"""`tack … queue`: the model's words, flags and output."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.answers import policy_view, queue_view
from tests.cli.conftest import Tack
from tests.cli.small_server import SmallServer, refusal

DEFAULTS = {
    "priorityFactor": 1.0,
    "userOwners": [],
    "groupOwners": [],
    "cordoned": False,
    "labels": {},
    "retryPolicies": [],
}
FILE = """\
apiVersion: armadaproject.io/v1beta1
kind: Queue
name: nightly
priorityFactor: 2
labels: {team: data}
retryPolicies: [oom-grow, other]
"""


@pytest.fixture
def queue_file(tmp_path: Path) -> Path:
    path = tmp_path / "queue.yaml"
    path.write_text(FILE)
    return path


def test_create_sends_every_flag(server: SmallServer, tack: Tack) -> None:
    server.on("POST queues", queue_view("nightly"), status=201)
    flags = ["--priority-factor", "2.5", "--owners", "alice,bob", "--group-owners", "ops", "--cordon"]
    said = tack(
        "create", "queue", "nightly", *flags, "-l", "team=data,tier=1", "--retry-policies", "oom-grow, b"
    )
    assert (said.code, said.out) == (0, "Created queue nightly\n")
    assert server.asked[-1].body == {
        "name": "nightly",
        "priorityFactor": 2.5,
        "userOwners": ["alice", "bob"],
        "groupOwners": ["ops"],
        "cordoned": True,
        "labels": {"team": "data", "tier": "1"},
        "retryPolicies": ["oom-grow", "b"],
    }


def test_update_resets_every_flag_not_given(server: SmallServer, tack: Tack) -> None:
    server.on("PUT queues/nightly", queue_view("nightly"))
    said = tack("update", "queue", "nightly", "--retry-policies", "oom-grow")
    assert said.out == "Updated queue nightly\n"
    assert server.asked[-1].body == DEFAULTS | {"name": "nightly", "retryPolicies": ["oom-grow"]}


def test_update_of_an_unknown_queue_is_refused(server: SmallServer, tack: Tack) -> None:
    server.on("PUT queues/nightly", refusal(404, "not_found", "There is no queue 'nightly'."))
    said = tack("update", "queue", "nightly")
    assert (said.code, said.err) == (1, "Error: There is no queue 'nightly'.\n")


def test_a_label_without_a_value_is_a_usage_error(tack: Tack) -> None:
    said = tack("create", "queue", "nightly", "--labels", "team")
    assert said.code == 2
    assert "'team' is not of the form key=value." in said.err


def test_problems_of_flags_are_told_with_their_paths(server: SmallServer, tack: Tack) -> None:
    problems = [
        {"path": "priorityFactor", "message": "Must be at least 1."},
        {"path": "retryPolicies", "message": "There is no retry policy 'x'."},
    ]
    server.on("POST queues", refusal(400, "invalid", "There are 2 problems.", problems))
    said = tack("create", "queue", "nightly")
    assert said.err == (
        "Error: There are 2 problems.\n"
        "  priorityFactor: Must be at least 1.\n"
        "  retryPolicies: There is no retry policy 'x'.\n"
    )


def test_a_lone_problem_that_the_sentence_tells_is_not_told_again(server: SmallServer, tack: Tack) -> None:
    sentence = "priorityFactor: Must be at least 1."
    problems = [{"path": "priorityFactor", "message": "Must be at least 1."}]
    server.on("POST queues", refusal(400, "invalid", sentence, problems))
    assert tack("create", "queue", "nightly").err == f"Error: {sentence}\n"


@pytest.mark.parametrize("word", ["create", "update"])
def test_policies_that_do_not_exist_are_told_with_what_can_be_done(
    server: SmallServer, tack: Tack, tmp_path: Path, word: str
) -> None:
    sentence = 'retry policies do not exist: "oom"'
    refused = refusal(400, "invalid", sentence, [{"path": "retryPolicies", "message": sentence}])
    server.on("POST queues", refused)
    server.on("PUT queues/nightly", refused)
    server.on("GET retry-policies", {"retryPolicies": [policy_view()]})
    fix = "Create them first with tack create -f FILE, or choose from oom-grow."
    said = tack(word, "queue", "nightly", "--retry-policies", "oom")
    assert said.err == f"Error: {sentence}. {fix}\n"
    file = tmp_path / "queue.yaml"
    file.write_text(
        "apiVersion: armadaproject.io/v1beta1\nkind: Queue\nname: nightly\nretryPolicies: [oom]\n"
    )
    assert tack("apply", "-f", str(file)).err == f"Error: {file}:4: retryPolicies: {sentence}. {fix}\n"


def test_delete_says_so_whether_or_not_it_existed(server: SmallServer, tack: Tack) -> None:
    expected = "Deleted queue nightly (or it did not exist)\n"
    assert tack("delete", "queue", "nightly").out == expected
    server.on("DELETE queues/nightly", {})
    assert tack("delete", "queue", "nightly").out == expected


def test_get_prints_what_create_takes(server: SmallServer, tack: Tack, tmp_path: Path) -> None:
    permissions = [{"subjects": [{"kind": "User", "name": "bob"}], "verbs": ["submit"]}]
    full = queue_view("nightly", userOwners=["alice"], retryPolicies=["b", "a"], permissions=permissions)
    server.on("GET queues/nightly", full)
    said = tack("get", "queue", "nightly")
    assert said.out.startswith("apiVersion: armadaproject.io/v1beta1\nkind: Queue\nname: nightly\n")
    assert yaml.safe_load(said.out)["retryPolicies"] == ["b", "a"]
    (tmp_path / "again.yaml").write_text(said.out)
    server.on("POST queues", full, status=201)
    assert tack("create", "-f", str(tmp_path / "again.yaml")).out == "Created queue nightly\n"
    assert server.asked[-1].body["permissions"] == permissions


def test_get_queues_prints_a_header_followed_by_a_list(server: SmallServer, tack: Tack) -> None:
    server.on("GET queues", {"queues": [queue_view("a"), queue_view("b", cordoned=True)]})
    header, queues = yaml.safe_load_all(tack("get", "queues").out)
    assert header == {"apiVersion": "armadaproject.io/v1beta1", "kind": "Queue"}
    assert queues == [
        {"name": "a", "priorityFactor": 1},
        {"cordoned": True, "name": "b", "priorityFactor": 1},
    ]


def test_get_queues_of_none_prints_an_empty_list(server: SmallServer, tack: Tack) -> None:
    server.on("GET queues", {"queues": []})
    assert tack("get", "queues").out.endswith("[]\n")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ([], "abc"),
        (["a", "c"], "ac"),
        (["a", "--inverse"], "bc"),
        (["--only-cordoned"], "b"),
        (["--only-cordoned", "--inverse"], "ac"),
        (["-l", "team"], "ab"),
        (["-l", "team=data"], "a"),
        (["-l", "team,tier=1"], "b"),
        (["--match-labels", "team", "--match-labels", "tier"], "b"),
        (["-l", "team", "--inverse"], "c"),
        (["nobody"], ""),
    ],
)
def test_queues_are_chosen_by_name_label_and_cordon(
    server: SmallServer, tack: Tack, words: list[str], names: str
) -> None:
    queues = [
        queue_view("a", labels={"team": "data"}),
        queue_view("b", labels={"team": "web", "tier": "1"}, cordoned=True),
        queue_view("c"),
    ]
    server.on("GET queues", {"queues": queues})
    printed: Any = list(yaml.safe_load_all(tack("get", "queues", *words).out))[1]
    assert [queue["name"] for queue in printed] == list(names)


def test_create_with_a_file_of_kind_queue(server: SmallServer, tack: Tack, queue_file: Path) -> None:
    server.on("POST queues", queue_view("nightly"), status=201)
    assert tack("create", "-f", str(queue_file)).out == "Created queue nightly\n"
    assert server.asked[-1].body == {
        "name": "nightly",
        "priorityFactor": 2,
        "labels": {"team": "data"},
        "retryPolicies": ["oom-grow", "other"],
    }


def test_apply_updates_a_queue_that_exists_and_creates_one_that_does_not(
    server: SmallServer, tack: Tack, queue_file: Path
) -> None:
    server.on("POST queues", queue_view("nightly"), status=201)
    assert tack("apply", "-f", str(queue_file)).out == "Created queue nightly\n"
    server.on("PUT queues/nightly", queue_view("nightly"))
    assert tack("apply", "-f", str(queue_file)).out == "Updated queue nightly\n"


def test_every_problem_of_a_queue_file_is_told_by_line(tack_alone: Tack, queue_file: Path) -> None:
    text = FILE.replace("priorityFactor: 2", "priorityFactor: 0.5\nretryPolicy: x\ncordoned: maybe")
    queue_file.write_text(text.replace("{team: data}", "{team: 3}").replace("v1beta1", "v2"))
    said = tack_alone("create", "-f", str(queue_file), "--dry-run")
    assert said.code == 1
    told = [line.removeprefix("Error: ").removeprefix(f"{queue_file}:") for line in said.err.splitlines()]
    assert told == [
        "1: apiVersion: For a queue this is armadaproject.io/v1beta1, not armadaproject.io/v2.",
        "4: priorityFactor: The priority factor is a number, 1 or above.",
        "5: retryPolicy: There is no field retryPolicy here. Did you mean retryPolicies?",
        "6: cordoned: cordoned is true or false.",
        "7: labels: The labels are names with texts, neither of them empty. Quote a number.",
    ]


def test_letter_case_of_field_names_is_forgiven(server: SmallServer, tack: Tack, queue_file: Path) -> None:
    queue_file.write_text(FILE.replace("kind:", "Kind:").replace("priorityFactor", "priorityfactor"))
    server.on("POST queues", queue_view("nightly"), status=201)
    assert tack("create", "-f", str(queue_file)).code == 0
    assert server.asked[-1].body["priorityFactor"] == 2


def test_options_of_policies_are_refused_for_a_queue(tack: Tack, queue_file: Path) -> None:
    said = tack("apply", "-f", str(queue_file), "--force")
    assert said.code == 2
    assert "for retry policies" in said.err
