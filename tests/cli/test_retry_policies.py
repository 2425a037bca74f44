"""`tack … retry-policy`: the model's words, and files told by line."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from lookout.cli.files import FileRefused
from policies.documents import parse_policy_document
from tests.cli.answers import POLICY_TEXT, policy_view
from tests.cli.conftest import Tack
from tests.cli.small_server import SmallServer, refusal


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY_TEXT)
    return path


def test_create_sends_the_file_as_written(server: SmallServer, tack: Tack, policy_file: Path) -> None:
    server.on("POST retry-policies", policy_view(), status=201)
    said = tack("create", "retry-policy", "-f", str(policy_file), "--note", "first", "--force")
    assert (said.code, said.out, said.err) == (0, "Created retry policy oom-grow\n", "")
    assert server.asked[-1].text == POLICY_TEXT
    assert server.asked[-1].query == {"note": ["first"], "force": ["true"]}


def test_create_of_an_existing_one_is_refused_in_tacks_words(
    server: SmallServer, tack: Tack, policy_file: Path
) -> None:
    sentence = "Retry policy 'oom-grow' exists already. Update it, or choose another name."
    server.on("POST retry-policies", refusal(409, "already_exists", sentence))
    said = tack("create", "retry-policy", "-f", str(policy_file))
    assert (said.code, said.out, said.err) == (1, "", f"Error: {sentence}\n")


def test_update_names_the_policy_in_the_file(server: SmallServer, tack: Tack, policy_file: Path) -> None:
    server.on("PUT retry-policies/oom-grow", policy_view(version=2))
    assert tack("update", "retry-policy", "-f", str(policy_file)).out == "Updated retry policy oom-grow\n"
    server.on("GET retry-policies/oom-grow", policy_view(version=2))
    said = tack("update", "retry-policy", "-f", str(policy_file))
    assert said.out == "Retry policy oom-grow is as in the file already\n"


def test_update_of_an_unknown_one_is_refused(tack: Tack, policy_file: Path) -> None:
    said = tack("update", "retry-policy", "-f", str(policy_file))
    assert (said.code, said.out) == (1, "")


def test_delete_says_so_whether_or_not_it_existed(server: SmallServer, tack: Tack) -> None:
    expected = "Deleted retry policy oom-grow (or it did not exist)\n"
    assert tack("delete", "retry-policy", "oom-grow").out == expected
    server.on("DELETE retry-policies/oom-grow", {})
    assert tack("delete", "retry-policy", "oom-grow", "--detach").out == expected
    assert server.asked[-1].query == {"detach": ["true"]}


def test_delete_of_an_attached_one_is_refused_with_the_fix(server: SmallServer, tack: Tack) -> None:
    sentence = (
        "Retry policy 'oom-grow' is attached to queue 'nightly'. Detach it first, or delete it with detach."
    )
    server.on("DELETE retry-policies/oom-grow", refusal(409, "conflict", sentence))
    said = tack("delete", "retry-policy", "oom-grow")
    assert (said.code, said.err) == (1, f"Error: {sentence} --detach does both at once.\n")


def test_get_prints_what_create_takes_with_keys_in_alphabetical_order(
    server: SmallServer, tack: Tack
) -> None:
    server.on("GET retry-policies/oom-grow", policy_view())
    said = tack("get", "retry-policy", "oom-grow")
    assert said.out == (
        "apiVersion: armadaproject.io/v1beta1\n"
        "defaultAction: Fail\n"
        "kind: RetryPolicy\n"
        "name: oom-grow\n"
        "retryLimit: 2\n"
        "rules:\n"
        "- action: Retry\n"
        "  mutate:\n"
        "    resources:\n"
        "      memory:\n"
        "        factor: 2\n"
        "  onCategory: oom\n"
    )
    assert parse_policy_document(said.out) == parse_policy_document(POLICY_TEXT)


def test_get_leaves_out_what_is_zero(server: SmallServer, tack: Tack) -> None:
    document = {"name": "1e9", "retryLimit": 0, "defaultAction": "Fail", "rules": []}
    server.on("GET retry-policies/1e9", policy_view(policy=document))
    said = tack("get", "retry-policy", "1e9")
    assert said.out == (
        "apiVersion: armadaproject.io/v1beta1\ndefaultAction: Fail\nkind: RetryPolicy\nname: '1e9'\n"
    )
    assert parse_policy_document(said.out).name == "1e9"


def test_get_all_prints_a_list_under_retry_policies(server: SmallServer, tack: Tack) -> None:
    server.on("GET retry-policies", {"retryPolicies": [policy_view()]})
    printed = yaml.safe_load(tack("get", "retry-policies").out)
    assert list(printed) == ["apiVersion", "kind", "retryPolicies"]
    assert printed["retryPolicies"][0]["name"] == "oom-grow"


def test_get_all_of_none_prints_an_empty_list(server: SmallServer, tack: Tack) -> None:
    server.on("GET retry-policies", {"retryPolicies": []})
    assert "retryPolicies: []\n" in tack("get", "retry-policies").out


SAID = {
    "problems": [{"path": "rules[0].onCategory", "message": "Executor 'west' retains what is left of category 'oom'."}],
    "warnings": [{"path": "", "message": "No executor tracks the label."}],
}  # fmt: skip
TOLD = [
    "Problem of retry policy oom-grow: rules[0].onCategory: Executor 'west' retains what is left of category 'oom'.",
    "Warning of retry policy oom-grow: No executor tracks the label.",
]


@pytest.mark.parametrize(
    ("words", "request_line", "answer"),
    [
        (("get", "retry-policy", "oom-grow"), "GET retry-policies/oom-grow", policy_view(**SAID)),
        (("get", "retry-policies"), "GET retry-policies", {"retryPolicies": [policy_view(**SAID)]}),
        (("create", "retry-policy", "--force", "-f"), "POST retry-policies", policy_view(**SAID)),
        (("update", "retry-policy", "--force", "-f"), "PUT retry-policies/oom-grow", policy_view(**SAID)),
    ],
)
def test_what_executors_say_to_a_policy_is_told_beside_what_is_printed(
    server: SmallServer,
    tack: Tack,
    policy_file: Path,
    words: tuple[str, ...],
    request_line: str,
    answer: dict[str, Any],
) -> None:
    server.on(request_line, answer)
    said = tack(*words, *([str(policy_file)] if words[-1] == "-f" else []))
    assert (said.code, said.err.splitlines()) == (0, TOLD)
    assert "Executor" not in said.out


def test_every_problem_of_a_file_is_told_by_line_and_nothing_is_sent(
    server: SmallServer, tack: Tack, policy_file: Path
) -> None:
    policy_file.write_text(
        POLICY_TEXT.replace("retryLimit: 2", 'retry_limit: "2"').replace("onCategory", "onCategori")
    )
    said = tack("create", "retry-policy", "-f", str(policy_file))
    assert said.code == 1
    assert f"{policy_file}:4: retry_limit: " in said.err
    assert f"{policy_file}:8: rules[0].onCategori: " in said.err
    assert server.asked == []


def test_a_key_written_twice_is_told_by_line(tack: Tack, policy_file: Path) -> None:
    policy_file.write_text(POLICY_TEXT.replace("retryLimit: 2", "name: other"))
    said = tack("create", "-f", str(policy_file))
    assert said.code == 1
    assert f"{policy_file}:4: name: " in said.err


def test_what_only_the_server_can_know_is_told_by_line_too(
    server: SmallServer, tack: Tack, policy_file: Path
) -> None:
    problem = {"path": "rules[0].onCategory", "message": "Executor 'local' retains category oom."}
    server.on("POST retry-policies", refusal(400, "invalid", "There is a problem.", [problem]))
    said = tack("create", "retry-policy", "-f", str(policy_file))
    assert said.code == 1
    assert (
        said.err == f"Error: {policy_file}:8: rules[0].onCategory: Executor 'local' retains category oom.\n"
    )


@pytest.mark.parametrize("words", [("create",), ("apply",)])
def test_a_dry_run_needs_no_server(tack_alone: Tack, policy_file: Path, words: tuple[str, ...]) -> None:
    said = tack_alone(*words, "-f", str(policy_file), "--dry-run")
    assert (said.code, said.out) == (0, f"{policy_file} is valid. Nothing was sent.\n")


def test_a_dry_run_parses_strictly(tack_alone: Tack, policy_file: Path) -> None:
    policy_file.write_text(POLICY_TEXT + "unknown: 1\n")
    said = tack_alone("create", "-f", str(policy_file), "--dry-run")
    assert said.code == 1
    assert f"{policy_file}:10: unknown: " in said.err


def test_create_with_a_file_of_kind_retry_policy_does_the_same(
    server: SmallServer, tack: Tack, policy_file: Path
) -> None:
    server.on("POST retry-policies", policy_view(), status=201)
    assert tack("create", "-f", str(policy_file)).out == "Created retry policy oom-grow\n"


def test_apply_creates_updates_and_leaves_alone(server: SmallServer, tack: Tack, policy_file: Path) -> None:
    server.on("POST retry-policies", policy_view(version=1), status=201)
    assert tack("apply", "-f", str(policy_file)).out == "Created retry policy oom-grow\n"
    assert server.asked[-1].query == {"apply": ["true"]}
    server.on("GET retry-policies/oom-grow", policy_view(version=1))
    assert tack("apply", "-f", str(policy_file)).out == "Retry policy oom-grow is as in the file already\n"
    server.on("POST retry-policies", policy_view(version=2))
    server.answer(server.asked[-1])
    assert tack("apply", "-f", str(policy_file)).out == "Updated retry policy oom-grow\n"


def test_a_json_file_is_a_file_like_any_other(server: SmallServer, tack: Tack, tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(
        '{\n\t"apiVersion": "armadaproject.io/v1beta1", "kind": "RetryPolicy",\n\t"name": "p1", "defaultAction": "Fail"}'
    )
    server.on("POST retry-policies", policy_view(), status=201)
    assert tack("create", "-f", str(path)).out == "Created retry policy p1\n"


def test_a_refused_file_is_an_error_of_exit_code_1() -> None:
    assert FileRefused("a.yaml", []).exit_code == 1


def test_create_of_a_file_carries_note_and_force(server: SmallServer, tack: Tack, policy_file: Path) -> None:
    server.on("POST retry-policies", policy_view(), status=201)
    assert tack("create", "-f", str(policy_file), "--note", "why", "--force").code == 0
    assert server.asked[-1].query == {"note": ["why"], "force": ["true"]}


def test_a_dry_run_of_create_retry_policy_sends_nothing(
    server: SmallServer, tack: Tack, policy_file: Path
) -> None:
    said = tack("create", "retry-policy", "-f", str(policy_file), "--dry-run")
    assert (said.code, said.out) == (0, f"{policy_file} is valid. Nothing was sent.\n")
    assert server.asked == []
