"""Placement: what fits where, asked for many jobs at once."""

import subprocess
import sys
from typing import Any

import pytest

from scheduler.placement import Fit, NodeCapacity, Requirements, fits_somewhere, reserved_memory

HOSTNAME = "kubernetes.io/hostname"
MEBI = 1 << 20


def node(name: str = "local-1", **fields: Any) -> NodeCapacity:
    defaults: dict[str, Any] = {
        "executor": "local",
        "labels": {HOSTNAME: name},
        "cpu_millicores": 2_000,
        "memory_bytes": 1024 * MEBI,
    }
    return NodeCapacity(name=name, **{**defaults, **fields})


def fit(wanted: Requirements, *nodes: NodeCapacity) -> Fit:
    return fits_somewhere([wanted], nodes, node_id_label=HOSTNAME)[wanted]


def test_a_job_as_large_as_a_node_fits_and_a_byte_more_does_not() -> None:
    assert fit(Requirements(cpu_millicores=2_000, memory_bytes=1024 * MEBI), node()).fits
    assert not fit(Requirements(memory_bytes=1024 * MEBI + 1), node()).fits
    assert not fit(Requirements(cpu_millicores=2_001), node()).fits


def test_an_empty_fleet_means_wait() -> None:
    assert fit(Requirements(memory_bytes=1 << 60)) == Fit(fits=True)


def test_a_closed_node_counts_for_what_could_fit_one_day() -> None:
    assert fit(Requirements(cpu_millicores=1), node(schedulable=False)).fits


def test_every_label_of_the_selector_must_match() -> None:
    ssd = node(labels={HOSTNAME: "local-1", "disk": "ssd"})
    assert fit(Requirements(node_selector=(("disk", "ssd"),)), node(), ssd).fits
    assert not fit(Requirements(node_selector=(("disk", "ssd"), ("zone", "a"))), node(), ssd).fits


def test_an_avoided_node_is_ruled_out_by_its_label_not_by_its_name() -> None:
    renamed = node("local-1", labels={HOSTNAME: "other"})
    assert fit(Requirements(avoided_nodes=("local-1",)), renamed).fits
    assert not fit(Requirements(avoided_nodes=("other",)), renamed).fits
    assert fit(Requirements(avoided_nodes=("other",)), renamed, node("local-2")).fits


def test_a_node_without_the_node_id_label_cannot_be_avoided() -> None:
    assert fit(Requirements(avoided_nodes=("", "local-1")), node(labels={})).fits is False
    assert fit(Requirements(avoided_nodes=("local-1",)), node(labels={})).fits


def test_other_resources_are_counted_and_an_unknown_one_is_nowhere() -> None:
    gpus = node(resources={"nvidia.com/gpu": 2})
    assert fit(Requirements(resources=(("nvidia.com/gpu", 2),)), gpus).fits
    assert not fit(Requirements(resources=(("nvidia.com/gpu", 3),)), gpus).fits
    assert not fit(Requirements(resources=(("example.com/fpga", 1),)), gpus).fits


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        (
            Requirements(memory_bytes=2048 * MEBI),
            "None of 2 nodes fits: 2 have less than 2Gi memory (at most 1Gi memory).",
        ),
        (
            Requirements(memory_bytes=1_234_567_890),
            "None of 2 nodes fits: 2 have less than 1.1Gi memory (at most 1Gi memory).",
        ),
        (
            Requirements(memory_bytes=1024 * MEBI + 1),
            "None of 2 nodes fits: 2 have less than 1073741825 memory (at most 1Gi memory).",
        ),
        (
            Requirements(cpu_millicores=2_500, avoided_nodes=("local-1",)),
            "None of 2 nodes fits: 1 is avoided after a failure there; 1 has less than 2.5 CPU (2 CPU).",
        ),
        (
            Requirements(node_selector=(("disk", "ssd"),)),
            "None of 2 nodes fits: 2 lack the label disk=ssd.",
        ),
        (
            Requirements(resources=(("nvidia.com/gpu", 1),)),
            "None of 2 nodes fits: 2 have less than 1 nvidia.com/gpu (at most 0 nvidia.com/gpu).",
        ),
    ],
)
def test_the_reason_says_what_keeps_the_job_from_every_node(wanted: Requirements, sentence: str) -> None:
    assert fit(wanted, node("local-1"), node("local-2")).reason == sentence


def test_equal_requirements_are_answered_once() -> None:
    small, large = Requirements(cpu_millicores=1), Requirements(cpu_millicores=9_999)
    answers = fits_somewhere([small, large, small] * 1_000, [node()], node_id_label=HOSTNAME)
    assert {wanted: answer.fits for wanted, answer in answers.items()} == {small: True, large: False}


def test_a_key_tells_requirements_apart_and_is_the_same_in_every_process() -> None:
    keys = {
        Requirements().key,
        Requirements(cpu_millicores=1).key,
        Requirements(memory_bytes=1).key,
        Requirements(resources=(("a", 1),)).key,
        Requirements(node_selector=(("a", "1"),)).key,
        Requirements(avoided_nodes=("a",)).key,
    }
    assert len(keys) == 6
    program = "from scheduler.placement import Requirements; print(Requirements(avoided_nodes=('a',)).key)"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == Requirements(avoided_nodes=("a",)).key


def test_a_job_reserves_what_it_may_use() -> None:
    assert reserved_memory(request=64, limit=128) == 128
    assert reserved_memory(request=64, limit=None) == 64
    assert reserved_memory(request=None, limit=None) == 0
