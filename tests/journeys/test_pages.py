"""Pages in a real browser: both themes, wide and narrow, axe on each, live without losing what one is doing."""

from collections.abc import Iterator, Mapping

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, expect
from pytest_django.live_server_helper import LiveServer

from lookout.access import ensure_admin, issue_sign_in_link
from scheduler.models import Job, RunOutput
from scheduler.states import JobState, RunState
from tests.factories import MEBI, make_job, make_policy, make_queue, make_run
from tests.pages.stories import retried_job, succeeded_job

pytestmark = pytest.mark.django_db(transaction=True)

PLACES = (
    "/jobs", "/jobs?queue=nightly&state=succeeded&filter=category.any", "/jobs?state=nothing", "/jobs?queue=nobody",
    "/jobs/{job}?open=1", "/jobs/{job}/cancel", "/jobs/unknown",
    "/policies", "/policies/oom-grow", "/policies/oom-grow/edit", "/policies/oom-grow/delete", "/new-policy",
    "/queues", "/queues/nightly?open=attach", "/queues/nightly/edit", "/queues/nightly/delete", "/new-queue", "/fleet",
)  # fmt: skip
EVERYTHING: Mapping[str, object] = {}
COLOURS: Mapping[str, object] = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
"""All that is otherwise in the dark."""
WIDE, NARROW = {"width": 1440, "height": 1000}, {"width": 390, "height": 844}


@pytest.fixture
def told(page: Page) -> Iterator[list[str]]:
    """What the browser complains about; at the end of the test there must be nothing."""
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            complaints.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield complaints
    assert complaints == []


@pytest.fixture
def signed_in(page: Page, live_server: LiveServer, told: list[str]) -> Page:
    """The browser of the admin, who came in by a link and its button."""
    page.goto(live_server.url + issue_sign_in_link(ensure_admin()))
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    page.wait_for_load_state()  # and its scripts are at work
    return page


def a_full_house() -> Job:
    """A job with a story, and something in every place."""
    job = succeeded_job()
    make_policy(note="a higher limit", retryLimit=3)
    make_job("nightly", state=JobState.REJECTED, rejected_because="No node has 1Ti.")
    make_run(make_job("nightly"))
    RunOutput.objects.create(run=job.runs.get(number=1), head=b"one line\n" * 40)
    return job


def violations(page: Page, *, of: Mapping[str, object] = EVERYTHING) -> list[str]:
    """What axe finds wrong with the page that is open."""
    found = Axe().run(page, options={"resultTypes": ["violations"], **of})
    return [found.generate_report()] if found.violations_count else []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_is_accessible_and_fits_wide_and_narrow(
    signed_in: Page, live_server: LiveServer, theme: str
) -> None:
    job = a_full_house()
    signed_in.emulate_media(color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce")
    troubles = []
    for size in (WIDE, NARROW):
        signed_in.set_viewport_size(size)  # type: ignore[arg-type]  # a plain dictionary will do
        for place in PLACES:
            signed_in.goto(live_server.url + place.format(job=job.id))
            if size is WIDE or theme == "light":  # what is narrow has the same colours
                wrong = violations(signed_in, of=EVERYTHING if theme == "light" else COLOURS)
                troubles += [f"{place} {theme}: {report}" for report in wrong]
            needed = signed_in.evaluate("document.documentElement.scrollWidth")
            if needed > size["width"]:
                troubles.append(f"{place} needs {needed} of {size['width']} px")
    assert not troubles, "\n".join(troubles)


def test_the_list_of_jobs_fits_a_laptop_with_long_names_and_all_else(
    signed_in: Page, live_server: LiveServer
) -> None:
    job = make_job(
        "nightly", job_set="renders/2026-11-29/chapter-1/shots-of-the-evening", memory_bytes=512 * MEBI
    )
    for number in range(3):
        node = f"ip-10-0-112-{number}.eu-west-1.compute.internal"
        make_run(
            job, state=RunState.FAILED, node=node, category="infrastructure", subcategory="image-pull-backoff"
        )
    Job.objects.update(memory_limit_bytes=1536 * MEBI)
    signed_in.set_viewport_size({"width": 1280, "height": 800})
    signed_in.goto(f"{live_server.url}/jobs")
    expect(signed_in.get_by_role("columnheader")).to_have_count(12)
    assert signed_in.locator("[data-first]").evaluate("list => list.scrollWidth") <= 1280
    signed_in.get_by_text("Columns").click()
    expect(signed_in.get_by_text("In state, no room here")).to_be_visible()
    signed_in.get_by_role("button", name="Show").click()
    expect(signed_in).to_have_url(f"{live_server.url}/jobs")


def test_the_form_of_a_filter_offers_what_its_field_takes(signed_in: Page, live_server: LiveServer) -> None:
    signed_in.keyboard.press("f")
    field = signed_in.get_by_label("Filter by")
    field.select_option("memory")
    expect(signed_in.get_by_label("Compared").get_by_role("option")).to_have_count(6)
    expect(field).to_be_focused()
    signed_in.get_by_label("Value").fill("much")
    signed_in.get_by_label("Value").press("Enter")
    expect(
        signed_in.get_by_text("memory takes an amount such as 512Mi or 2G; 'much' is none.")
    ).to_be_visible()
    signed_in.get_by_label("Compared").select_option("above")
    signed_in.get_by_label("Value").fill("1Mi")
    signed_in.get_by_label("Value").press("Enter")
    expect(signed_in).to_have_url(f"{live_server.url}/jobs?memory%3E1Mi=")


def test_the_story_is_followed_from_the_list_to_the_job(signed_in: Page) -> None:
    job = a_full_house()
    signed_in.reload()
    signed_in.locator(f"#job-{job.id} a[data-row]").click()
    expect(signed_in.get_by_text("Succeeded at run 2 with 128Mi of memory instead of 64Mi.")).to_be_visible()
    sentence = "Rule 1 of oom-grow (version 1) matched category oom: retry 1 of 2, memory 64Mi → 128Mi."
    expect(signed_in.get_by_text(sentence)).to_be_visible()
    expect(signed_in.locator("#run-1")).to_contain_text("retryable")
    expect(signed_in.locator("#run-2")).to_contain_text("succeeded")


def test_a_page_follows_its_job_and_stops_when_it_has_ended(signed_in: Page, live_server: LiveServer) -> None:
    job = retried_job()
    signed_in.goto(f"{live_server.url}/jobs/{job.id}")
    line = signed_in.locator(".why b")
    expect(line).to_have_text("Run 1 failed: out of memory. Waiting for a node for retry 1 of 2 with 128Mi.")
    run = make_run(Job.objects.get(id=job.id), state=RunState.SUCCEEDED, exit_code=0)
    Job.objects.filter(id=job.id).update(state=JobState.SUCCEEDED, ended_at=run.ended_at)
    expect(line).to_have_text("Succeeded at run 2 with 128Mi of memory instead of 64Mi.")
    expect(signed_in.locator("[data-live]")).to_have_count(0)
    expect(signed_in.locator("[data-live-status]")).to_be_hidden()


def test_a_refresh_keeps_what_one_is_doing(signed_in: Page, live_server: LiveServer) -> None:
    queue = make_queue("nightly")
    jobs = [make_job(queue) for _ in range(45)]
    signed_in.set_viewport_size(WIDE)  # type: ignore[arg-type]
    signed_in.goto(f"{live_server.url}/jobs")
    signed_in.keyboard.press("f")
    signed_in.get_by_label("Value").fill("nigh")
    signed_in.locator("[data-first]").evaluate("list => { list.scrollTop = 300 }")
    newest = make_job(queue)
    expect(signed_in.get_by_role("link", name="1 newer")).to_be_visible()
    expect(signed_in.get_by_label("Value")).to_have_value("nigh")
    expect(signed_in.get_by_label("Value")).to_be_focused()
    assert signed_in.locator("[data-first]").evaluate("list => list.scrollTop") == 300
    expect(signed_in.locator(f"#job-{newest.id}")).to_have_count(0)

    Job.objects.filter(id=jobs[20].id).update(state=JobState.CANCELLED, ended_at=jobs[20].submitted_at)
    expect(signed_in.locator(f"#job-{jobs[20].id}")).to_contain_text("cancelled")
    expect(signed_in.locator(f"#job-{jobs[20].id}")).to_have_class("changed")


def test_a_page_is_paused_by_its_button_and_goes_on(signed_in: Page) -> None:
    signed_in.get_by_role("button", name="Pause").click()
    expect(signed_in.get_by_text("Paused")).to_be_visible()
    with signed_in.expect_request("**/jobs") as asked:
        signed_in.get_by_role("button", name="Go on").click()
    assert asked.value.headers["hx-request"] == "true"


def test_a_page_nobody_looks_at_does_not_ask(signed_in: Page) -> None:
    asked: list[str] = []
    signed_in.evaluate("Object.defineProperty(document, 'hidden', {configurable: true, get: () => true})")
    signed_in.wait_for_load_state("networkidle")  # a question asked before may be on its way
    # The page's own questions only: the browser may still be fetching its icon.
    signed_in.on(
        "request", lambda request: asked.extend([request.url] if "hx-request" in request.headers else [])
    )
    region = signed_in.locator("#live")
    region.evaluate(
        "region => { for (let n = 0; n < 5; n++) region.dispatchEvent(new CustomEvent('every')) }"
    )
    assert asked == []
    signed_in.evaluate("delete document.hidden")
    with signed_in.expect_request("**/jobs"):
        signed_in.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_a_server_that_is_silent_is_told_and_the_page_stays(signed_in: Page, told: list[str]) -> None:
    signed_in.route("**/jobs", lambda route: route.fulfill(status=503, body="<h1>gone</h1>"))
    expect(signed_in.get_by_text("Tack could not refresh this page.")).to_be_visible()
    expect(signed_in.get_by_role("heading", name="Jobs")).to_be_visible()
    expect(signed_in.locator(".live")).to_have_text("Lost")
    signed_in.unroute("**/jobs")
    signed_in.route("**/jobs", lambda route: route.abort())
    expect(signed_in.get_by_text("Tack does not answer; this is how it was.")).to_be_visible()
    expect(signed_in.locator(".live")).to_have_text("Lost")
    signed_in.unroute("**/jobs")
    expect(signed_in.get_by_text("Tack does not answer; this is how it was.")).to_be_hidden()
    expect(signed_in.locator(".live")).to_have_text("Live")
    told[:] = [text for text in told if "Failed to fetch" not in text]


def test_what_is_unfolded_stays_unfolded(signed_in: Page, live_server: LiveServer) -> None:
    job = retried_job()
    signed_in.goto(f"{live_server.url}/jobs/{job.id}")
    signed_in.get_by_text("More of this run").click()
    expect(signed_in).to_have_url(f"{live_server.url}/jobs/{job.id}?open=1")
    with signed_in.expect_response("**/jobs/*?open=1"):
        pass
    expect(signed_in.locator("#unfold-1")).to_have_attribute("open", "")
    expect(signed_in.get_by_text("run id")).to_be_visible()


def test_a_job_is_cancelled_in_a_dialog_that_says_what_happens(
    signed_in: Page, live_server: LiveServer
) -> None:
    job = make_job("nightly")
    signed_in.goto(f"{live_server.url}/jobs/{job.id}")
    signed_in.get_by_role("link", name="Cancel…").click()
    dialog = signed_in.get_by_role("dialog", name="Cancel this job?")
    expect(dialog).to_contain_text("never starts")
    dialog.get_by_role("link", name="Keep it").click()
    expect(dialog).to_be_hidden()
    signed_in.get_by_role("link", name="Cancel…").click()
    dialog.get_by_label("Reason, shown on the page of the job").fill("wrong input")
    assert violations(signed_in) == []
    dialog.get_by_role("button", name="Cancel the job").click()
    expect(signed_in.locator(".why")).to_contain_text("Cancelled by admin.")
    expect(signed_in.locator(".toast")).to_have_text("The job is cancelled.")


def test_a_policy_is_checked_while_it_is_typed_and_published(
    signed_in: Page, live_server: LiveServer
) -> None:
    make_policy()
    signed_in.goto(f"{live_server.url}/policies/oom-grow/edit")
    text = signed_in.get_by_role("textbox", name="Document")
    text.press("Control+End")
    text.press_sequentially("  - action: Retry\n    onCategory: ''")
    reading = signed_in.locator("#reading")
    expect(reading).to_contain_text("1 problem")
    expect(reading).to_contain_text("Name the category this rule is for.")
    expect(text).to_be_focused()

    reading.get_by_role("link", name="Line").click()
    marked = text.evaluate("field => field.value.slice(field.selectionStart, field.selectionEnd)")
    assert marked == "    onCategory: ''"
    signed_in.keyboard.type("    onCategory: gpu")
    expect(reading).to_contain_text("Retries when the category is gpu.")
    signed_in.get_by_label("Note").fill("gpu failures too")
    signed_in.get_by_role("button", name="Publish version 2").click()
    expect(signed_in.locator(".toast")).to_have_text("Version 2 of oom-grow is in force.")
    expect(signed_in.get_by_role("cell", name="gpu failures too")).to_be_visible()


def test_a_text_that_was_not_sent_is_not_lost_without_a_question(
    signed_in: Page, live_server: LiveServer
) -> None:
    make_policy()
    editor = f"{live_server.url}/policies/oom-grow/edit"
    signed_in.goto(editor)
    numbers = signed_in.locator("[data-numbers]")
    expect(numbers).to_contain_text("3")
    document = signed_in.get_by_role("textbox", name="Document")
    document.press("Control+End")
    document.press_sequentially("# mine")
    for way_out in ("Discard", "Queues"):
        with signed_in.expect_event("dialog") as asked:
            signed_in.once("dialog", lambda dialog: dialog.dismiss())
            signed_in.get_by_role("link", name=way_out).click(no_wait_after=True)
        assert asked.value.type == "beforeunload"
        expect(signed_in).to_have_url(editor)
    signed_in.get_by_label("Note").fill("mine")
    signed_in.get_by_label("Note").press("Enter")
    expect(signed_in).to_have_url(f"{live_server.url}/policies/oom-grow")


def test_the_keyboard_goes_through_rows_and_places(signed_in: Page, live_server: LiveServer) -> None:
    first, second = make_job("nightly"), make_job("nightly")
    signed_in.goto(f"{live_server.url}/jobs")
    for key in ("j", "j", "k", "j"):
        signed_in.keyboard.press(key)
    expect(signed_in.locator(f"#job-{first.id} a[data-row]")).to_be_focused()
    with signed_in.expect_response("**/jobs"):
        signed_in.keyboard.press("r")
    expect(signed_in.locator(f"#job-{first.id} a[data-row]")).to_be_focused()
    signed_in.keyboard.press("k")
    signed_in.keyboard.press("Enter")
    expect(signed_in).to_have_url(f"{live_server.url}/jobs/{second.id}")
    signed_in.keyboard.press("g")
    signed_in.keyboard.press("q")
    expect(signed_in).to_have_url(f"{live_server.url}/queues")
    signed_in.keyboard.press("?")
    expect(signed_in.get_by_role("dialog", name="Keys")).to_be_visible()
    signed_in.keyboard.press("Escape")
    signed_in.keyboard.press("/")
    signed_in.keyboard.type(first.id)
    signed_in.keyboard.press("Enter")
    expect(signed_in).to_have_url(f"{live_server.url}/jobs/{first.id}")


def test_single_keys_can_be_switched_off(signed_in: Page, live_server: LiveServer) -> None:
    make_job("nightly")
    signed_in.get_by_text("admin").click()
    with signed_in.expect_response("**/choices"):
        signed_in.get_by_label("Single keys").select_option("off")
    signed_in.goto(f"{live_server.url}/jobs")
    signed_in.keyboard.press("j")
    expect(signed_in.locator("body")).to_be_focused()


def test_a_theme_takes_effect_at_once_and_stays(signed_in: Page, live_server: LiveServer) -> None:
    signed_in.emulate_media(color_scheme="light")
    signed_in.get_by_text("admin").click()
    with signed_in.expect_response("**/choices"):
        signed_in.get_by_label("Theme").select_option("dark")
    for _ in range(2):
        assert (
            signed_in.evaluate("getComputedStyle(document.documentElement).backgroundColor")
            == "rgb(14, 19, 23)"
        )
        signed_in.goto(f"{live_server.url}/fleet")


def test_every_page_works_with_script_switched_off(browser: Browser, live_server: LiveServer) -> None:
    job = make_job("nightly")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(live_server.url + issue_sign_in_link(ensure_admin()))
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("Filter", exact=True).click()
    page.get_by_label("Filter by").select_option("State")
    page.get_by_label("Value").fill("queued")
    page.get_by_role("button", name="Add").click()
    expect(page).to_have_url(f"{live_server.url}/jobs?state=queued")
    page.locator(f"#job-{job.id} a[data-row]").click()
    page.get_by_role("link", name="Cancel…").click()
    page.get_by_label("Reason, shown on the page of the job").fill("by hand")
    page.get_by_role("button", name="Cancel the job").click()
    expect(page.locator(".why")).to_contain_text("Cancelled by admin.")
    expect(page.locator("[data-live-status]").first).to_be_hidden()
    page.goto(f"{live_server.url}/new-policy")
    page.get_by_role("textbox", name="Document").fill("kind: RetryPolicy")
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#reading")).to_contain_text("problem")
    context.close()
