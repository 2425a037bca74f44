"""Placement: what a job needs, what a node has, and whether the one fits the other.

`labels` says which labels and taints let a job onto a node, `requirements` what a job asks, `fitting` whether a
node can give it, and `obstacles` in words what stands in the way. Nothing here knows rows or a clock.
"""

from scheduler.placement.fitting import (
    Fit,
    NodeCapacity,
    allowed,
    barred,
    discouraged,
    fits_somewhere,
    lacking,
    obstacle_to,
)
from scheduler.placement.labels import (
    Effect,
    Expression,
    Operator,
    Taint,
    Toleration,
    TolerationOperator,
    affinity_of,
    taints_of,
    tolerations_of,
)
from scheduler.placement.obstacles import Obstacle, ObstacleKind, why_nowhere
from scheduler.placement.requirements import Asking, Requirements, reserved_memory

__all__ = [
    "Asking",
    "Effect",
    "Expression",
    "Fit",
    "NodeCapacity",
    "Obstacle",
    "ObstacleKind",
    "Operator",
    "Requirements",
    "Taint",
    "Toleration",
    "TolerationOperator",
    "affinity_of",
    "allowed",
    "barred",
    "discouraged",
    "fits_somewhere",
    "lacking",
    "obstacle_to",
    "reserved_memory",
    "taints_of",
    "tolerations_of",
    "why_nowhere",
]
