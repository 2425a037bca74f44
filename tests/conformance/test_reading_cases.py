"""The rules of the case files themselves: Tack's expectation wins, and nothing unknown passes."""

import pytest

from tests.conformance.cases import read_case

ROW = {"id": "x-1", "title": "t", "origin": "derived", "bump": 1, "expect": {"a": 1}}


def test_without_a_word_of_tack_armada_s_expectation_holds() -> None:
    case = read_case(ROW)
    assert (case.expect, case.given) == ({"a": 1}, {"bump": 1})


def test_tack_s_expectation_replaces_armada_s_whole_and_its_inputs_one_by_one() -> None:
    case = read_case(ROW | {"tack": {"expect": {"b": 2}, "because": "ours", "bump": 3}})
    assert (case.expect, case.given, case.because) == ({"b": 2}, {"bump": 3}, "ours")


def test_what_tack_does_not_have_is_skipped_with_its_reason() -> None:
    assert read_case(ROW | {"tack": "not applicable: no such thing"}).not_applicable.endswith("no such thing")


def test_any_other_word_of_tack_is_an_error() -> None:
    with pytest.raises(ValueError, match="no rule covers"):
        read_case(ROW | {"tack": "skip"})


def test_a_key_the_runner_does_not_know_is_an_error() -> None:
    with pytest.raises(KeyError, match="bump"):
        read_case(ROW).refuse_unknown_keys((), ("a",))
    with pytest.raises(KeyError, match="'a'"):
        read_case(ROW).refuse_unknown_keys(("bump",), ())


def test_a_difference_fails_and_a_piece_of_armada_s_wording_is_not_compared() -> None:
    case = read_case(ROW | {"expect": {"a": 1, "reference_fragment": "must"}})
    case.check({"a": 1})
    with pytest.raises(AssertionError):
        case.check({"a": 2})
