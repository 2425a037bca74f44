"""scheduler_config.json: with which configuration the scheduler starts, and when it warns."""

import pytest

from scheduler.config import Configuration, ConfigurationInvalid, configuration_from
from tests.conformance.cases import Case, cases


def _read(case: Case) -> Configuration | None:
    try:
        return configuration_from({"scheduling": case.given["config"]})
    except ConfigurationInvalid:
        return None


@pytest.mark.parametrize("case", cases("scheduler_config.json"))
def test_the_scheduler_starts_and_warns_as_recorded(case: Case) -> None:
    case.refuse_unknown_keys(("config",), ("starts", "warns_kill_switch"))
    found = _read(case)
    case.check({"starts": found is not None, "warns_kill_switch": bool(found and found.warnings)})
