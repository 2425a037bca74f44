"""The out-of-memory story, followed in a browser from the sign-in link to the job's page, on a whole Tack.

With TACK_PICTURES set to a folder it leaves the pictures of the README and the tutorial there.
"""

import os
from pathlib import Path

import pytest
import yaml
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, ViewportSize, expect

import lookout.story
from lookout.client import Client

STORY = Path(lookout.story.__file__).parent
SENTENCE = "Rule 1 of oom-grow (version 1) matched category oom: retry 1 of 2, memory 64Mi → 128Mi."
PICTURE = ViewportSize(width=1280, height=760)
SETTLED = 30_000.0
"""Milliseconds the whole story may take on a busy machine."""


@pytest.fixture(scope="module")
def tack(client: Client) -> Client:
    """With the policy and the queue of the story."""
    client.create_retry_policy((STORY / "policy.yaml").read_text())
    client.create_queue({"name": "oom-grow-queue", "retryPolicies": ["oom-grow"]})
    return client


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_story_is_seen_as_it_happens(page: Page, tack: Client, theme: str) -> None:
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    page.set_viewport_size(PICTURE)
    page.goto(tack.sign_in_link())
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()

    (submitted,) = tack.submit_jobs(yaml.safe_load((STORY / "job.yaml").read_text()))
    row = page.locator(f"#job-{submitted.job_id}")
    expect(row).to_be_visible()  # the list is live
    row.locator("a[data-row]").click()
    line = page.locator(".why b")
    expect(line).to_have_text("Succeeded at run 2 with 128Mi of memory instead of 64Mi.", timeout=SETTLED)

    first, second = page.locator("#run-1"), page.locator("#run-2")
    for words in ("failed", "oom", "retryable", "memory64Mi", "exit code137, SIGKILL"):
        expect(first).to_contain_text(words)
    expect(second).to_contain_text("succeeded")
    expect(second).to_contain_text("memory128Mi")
    expect(page.locator("#turn-1")).to_contain_text(SENTENCE)
    expect(page.get_by_label("Output of run 2")).to_contain_text("written")
    _is_accessible(page)
    if folder := os.environ.get("TACK_PICTURES"):
        page.screenshot(path=Path(folder) / f"job-page-{theme}.png")

    page.get_by_role("link", name="Fleet").click()
    expect(page.locator("#local-2")).to_contain_text("ready")
    _is_accessible(page)
    page.get_by_role("link", name="Policies").click()
    page.get_by_role("link", name="oom-grow", exact=True).click()
    expect(page.get_by_text("Retries when the category is oom, with twice the memory.")).to_be_visible()
    expect(page.locator("#queues")).to_be_visible()
    expect(page.locator(".t .verdict").first).to_have_text("retry")
    _is_accessible(page)


def _is_accessible(page: Page) -> None:
    found = Axe().run(page)
    assert not found.violations_count, found.generate_report()
