"""Write a policy as text."""

import pytest
from django.test import Client

from scheduler.models import RetryPolicyVersion
from tests.factories import make_executor, make_policy, make_queue
from tests.pages.conftest import HTMX
from tests.pages.seen import seen

pytestmark = pytest.mark.django_db

TEXT = """\
# Why: out-of-memory kills in the night.
apiVersion: armadaproject.io/v1beta1
kind: RetryPolicy
name: oom-grow
retryLimit: 3
defaultAction: Fail
rules:
  - action: Retry
    onCategory: oom
    mutate: {resources: {memory: {factor: 2}}}
"""
BROKEN = (
    TEXT.replace("onCategory: oom", 'onCategory: ""').replace("factor: 2", "factor: 1").replace("3", "-3")
)


def test_a_policy_is_written_published_and_shown_as_typed(as_olga: Client) -> None:
    form = {"text": TEXT.replace("\n", "\r\n"), "note": "for the night"}
    assert as_olga.post("/new-policy", form).headers["Location"] == "/policies/oom-grow"
    version = RetryPolicyVersion.objects.get()
    assert (version.text, version.note, version.author) == (TEXT, "for the night", "olga")
    words = seen(as_olga.get("/policies/oom-grow")).words
    assert "Version 1 of oom-grow is in force." in words
    assert "# Why: out-of-memory kills in the night." in words


def test_the_new_editor_begins_with_an_example_that_is_right(as_olga: Client) -> None:
    make_executor()
    words = seen(as_olga.get("/new-policy")).words
    assert "no problem" in words
    assert "Retries when the category is oom, with twice the memory." in words


def test_every_problem_is_shown_with_its_line_and_its_path(as_olga: Client) -> None:
    answer = as_olga.post("/new-policy", {"text": BROKEN})
    assert answer.status_code == 400
    words = seen(answer).words
    assert "3 problems" in words
    assert "Line 5: This must be a whole number from 0 to 4294967295, not -3. retryLimit" in words
    assert "Line 9: Name the category this rule is for." in words
    assert "rules[0].onCategory" in words
    assert "Line 10: The factor must be above 1" in words
    assert 'onCategory: ""' in words
    assert not RetryPolicyVersion.objects.exists()


def test_what_was_typed_stays_in_the_form(as_olga: Client) -> None:
    page = seen(as_olga.post("/new-policy", {"text": BROKEN, "note": "my note"}))
    assert "# Why: out-of-memory kills in the night." in page.words
    assert {"my note"} == {
        field["value"] for field in page.attributes("input") if field.get("name") == "note"
    }


def test_the_check_while_typing_answers_with_the_reading_alone(as_olga: Client) -> None:
    answer = as_olga.post("/check-policy", {"text": BROKEN, "name": ""}, headers=HTMX)
    assert answer.status_code == 200
    assert answer.content.strip().startswith(b'<section class="sec" id="reading"')
    assert "3 problems" in seen(answer).words
    whole = as_olga.post("/new-policy", {"text": BROKEN}).content
    assert answer.content.strip() in whole


def test_without_script_a_button_checks_and_publishes_nothing(as_olga: Client) -> None:
    answer = as_olga.post("/new-policy", {"text": TEXT, "check": "true"})
    assert answer.status_code == 200
    assert "Retries at most 3 times." in seen(answer).words
    assert not RetryPolicyVersion.objects.exists()


def test_rules_that_are_right_keep_their_sentence_while_another_is_wrong(as_olga: Client) -> None:
    text = TEXT + "  - action: Perhaps\n    onCategory: gpu\n"
    words = seen(as_olga.post("/check-policy", {"text": text}, headers=HTMX)).words
    assert "1 oom Retries when the category is oom, with twice the memory." in words
    assert "2 gpu Something is wrong with this rule; see above." in words


@pytest.mark.parametrize(
    "text", ["", "- a list", "a: [", "a: &x 1\nb: *x", "\x00", "name: " + "x" * 300_000, "{" * 5_000]
)
def test_any_text_at_all_is_answered_with_problems(as_olga: Client, text: str) -> None:
    answer = as_olga.post("/new-policy", {"text": text})
    assert answer.status_code == 400
    assert " problem" in seen(answer).words


def test_an_edit_makes_the_next_version(as_olga: Client) -> None:
    make_policy()
    form = {"text": TEXT, "based_on": "1"}
    assert as_olga.post("/policies/oom-grow/edit", form).headers["Location"] == "/policies/oom-grow"
    assert "Version 2 of oom-grow is in force." in seen(as_olga.get("/policies/oom-grow")).words


def test_publishing_the_same_document_again_makes_no_version(as_olga: Client) -> None:
    as_olga.post("/new-policy", {"text": TEXT})
    as_olga.post("/policies/oom-grow/edit", {"text": TEXT, "based_on": "1"})
    assert RetryPolicyVersion.objects.count() == 1
    assert "Nothing changed: this is version 1 of oom-grow." in seen(as_olga.get("/policies/oom-grow")).words


def test_a_lost_update_is_caught_and_both_texts_are_shown(as_olga: Client) -> None:
    make_policy()
    make_policy(author="jonas", note="a limit of 7", retryLimit=7)
    answer = as_olga.post("/policies/oom-grow/edit", {"text": TEXT, "based_on": "1", "note": "mine"})
    assert answer.status_code == 409
    page = seen(answer)
    assert "jonas published version 2 while you edited: “a limit of 7”. Nothing is lost" in page.words
    assert "− only in version 2, by jonas; + only in your text" in page.words
    assert "+ # Why: out-of-memory kills in the night." in page.words
    assert "− retryLimit: 7" in page.words
    assert RetryPolicyVersion.objects.count() == 2

    hidden = {field["name"]: field.get("value") for field in page.attributes("input") if field.get("name")}
    as_olga.post("/policies/oom-grow/edit", {"text": TEXT, "based_on": hidden["based_on"], "note": "mine"})
    assert RetryPolicyVersion.objects.filter(version=3, author="olga").exists()


def test_a_policy_keeps_its_name(as_olga: Client) -> None:
    make_policy("other")
    answer = as_olga.post("/policies/other/edit", {"text": TEXT, "based_on": "1"})
    assert answer.status_code == 400
    assert "This is policy 'other'. A policy keeps its name" in seen(answer).words


def test_a_name_in_use_is_told(as_olga: Client) -> None:
    make_policy()
    answer = as_olga.post("/new-policy", {"text": TEXT})
    assert answer.status_code == 409
    assert "Retry policy 'oom-grow' exists already." in seen(answer).words


def test_the_check_while_typing_says_that_a_name_is_in_use(as_olga: Client) -> None:
    make_policy()
    new = seen(as_olga.post("/check-policy", {"text": TEXT, "name": ""}, headers=HTMX)).words
    assert "Retry policy 'oom-grow' exists already. Choose another name, or edit that policy." in new
    edited = seen(as_olga.post("/check-policy", {"text": TEXT, "name": "oom-grow"}, headers=HTMX)).words
    assert "no problem" in edited


def test_the_example_of_the_new_editor_has_a_free_name(as_olga: Client) -> None:
    make_policy()
    make_policy("oom-grow-2")
    page = seen(as_olga.get("/new-policy"))
    assert "name: oom-grow-3" in page.words
    assert "no problem" in page.words


@pytest.mark.parametrize("address", ["/new-policy", "/policies/oom-grow/edit"])
def test_enter_in_the_note_publishes(as_olga: Client, address: str) -> None:
    make_policy()
    form = as_olga.get(address).content.decode().partition("data-unsaved")[2].partition("</form>")[0]
    first = next(button for button in seen(form).attributes("button"))
    assert "name" not in first
    assert "primary" in first["class"]


def test_a_field_that_is_not_there_marks_no_line(as_olga: Client) -> None:
    text = TEXT.replace("defaultAction: Fail\n", "")
    words = seen(as_olga.post("/check-policy", {"text": text}, headers=HTMX)).words
    assert "Say what happens when no rule matches: defaultAction: Fail or Retry. defaultAction" in words
    assert "Line 1" not in words


def test_what_was_sent_and_refused_is_still_unsaved(as_olga: Client) -> None:
    (form,) = (f for f in seen(as_olga.get("/new-policy")).attributes("form") if "data-unsaved" in f)
    assert form["data-unsaved"] == ""
    answer = as_olga.post("/new-policy", {"text": BROKEN})
    (form,) = (f for f in seen(answer).attributes("form") if "data-unsaved" in f)
    assert form["data-unsaved"] == "yes"


def test_an_older_version_is_restored_as_a_new_one(as_olga: Client) -> None:
    make_policy()
    make_policy(retryLimit=7)
    page = seen(as_olga.get("/policies/oom-grow/edit?from=1"))
    fields = {field["name"]: field.get("value") for field in page.attributes("input") if field.get("name")}
    assert (fields["based_on"], fields["note"]) == ("2", "Back to version 1")
    assert "retryLimit: 2" in page.words


def test_what_executors_object_to_is_published_only_by_force(as_olga: Client) -> None:
    make_executor(categories=[{"name": "oom", "disposition": "Retain"}])
    answer = as_olga.post("/new-policy", {"text": TEXT})
    assert answer.status_code == 409
    page = seen(answer)
    assert "1 objection of executors" in page.words
    assert "Executor 'local' retains the remains of a run that ends in category 'oom'" in page.words
    assert "Publish it all the same; the executors will be changed" in page.words
    assert "Not published: tick “Publish it all the same”" in page.words
    assert as_olga.post("/new-policy", {"text": TEXT, "force": "true"}).status_code == 302


def test_texts_of_others_never_become_markup(as_olga: Client) -> None:
    hostile = "</textarea><script>alert(1)</script>"
    answer = as_olga.post("/new-policy", {"text": f"name: {hostile}", "note": hostile})
    assert "<script>alert" not in answer.content.decode()


def test_the_editor_says_where_the_policy_decides(as_olga: Client) -> None:
    make_policy()
    make_queue("nightly", policies=("oom-grow",))
    assert (
        "Decides in nightly as soon as it is published." in seen(as_olga.get("/policies/oom-grow/edit")).words
    )
