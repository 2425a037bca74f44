"""Pages that promise a test for each claim name tests that exist, and forget none of their claims."""

import re

import pytest

from tests.docs.reading import CHECKOUT, DOCS, text_of

SWITCHING_ON = DOCS / "how-to" / "switch-retry-policies-on.md"
_NAMED = re.compile(r"<!-- (tests/[\w/]+\.py)::(\w+) -->")


@pytest.mark.parametrize(("file", "test"), _NAMED.findall(text_of(SWITCHING_ON)))
def test_a_test_that_is_named_exists(file: str, test: str) -> None:
    assert re.search(rf"^def {test}\(", (CHECKOUT / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_claim_names_its_test() -> None:
    claims = re.findall(r"^- (.*?)(?=^- |^#|\n\n)", text_of(SWITCHING_ON), re.MULTILINE | re.DOTALL)
    assert len(claims) > 20
    assert [claim for claim in claims if not _NAMED.search(claim)] == []
