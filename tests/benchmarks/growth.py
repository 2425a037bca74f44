"""How large the hot tables and their indexes are, and how much of them is dead or free."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.benchmarks.ended_runs import Connection

HOT = ("scheduler_job", "scheduler_run", "scheduler_jobset", "scheduler_event", "scheduler_decision")

_SIZES = """
    SELECT c.relname, pg_relation_size(c.oid), pg_indexes_size(c.oid), s.n_tup_upd, s.n_tup_hot_upd,
           s.autovacuum_count + s.vacuum_count, t.tuple_count, t.dead_tuple_percent, t.free_percent
      FROM pg_class c JOIN pg_stat_user_tables s ON s.relid = c.oid, LATERAL pgstattuple(c.oid) AS t
     WHERE c.relname = ANY(%s)
  ORDER BY array_position(%s, c.relname)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class TableSize:
    """One table as it lies on disk."""

    name: str
    heap_bytes: int
    index_bytes: int
    updates: int
    hot_updates: int
    """Those that left every index alone."""
    vacuums: int
    rows: int
    dead_percent: float
    free_percent: float

    def __str__(self) -> str:
        hot = f"{100 * self.hot_updates / self.updates:.0f} %" if self.updates else "-"
        return (
            f"{self.name.removeprefix('scheduler_'):<10} {self.rows:>10,} {_mb(self.heap_bytes):>9}"
            f" {_mb(self.index_bytes):>9} {self.dead_percent:>5.0f} % {self.free_percent:>5.0f} %"
            f" {self.updates:>11,} {hot:>6} {self.vacuums:>8}"
        )


HEADING = (
    f"{'table':<10} {'rows':>10} {'heap':>9} {'indexes':>9} {'dead':>7} {'free':>7}"
    f" {'updates':>11} {'hot':>6} {'vacuums':>8}"
)


def table_sizes(line: Connection, names: Sequence[str] = HOT) -> list[TableSize]:
    """The tables as they are now."""
    line.execute("CREATE EXTENSION IF NOT EXISTS pgstattuple")
    wanted = list(names)
    return [_size(*row) for row in line.execute(_SIZES, [wanted, wanted])]


def _size(
    name: str,
    heap: int,
    indexes: int,
    updates: int,
    hot: int,
    vacuums: int,
    rows: int,
    dead: float,
    free: float,
) -> TableSize:
    return TableSize(
        name=name, heap_bytes=heap, index_bytes=indexes, updates=updates, hot_updates=hot, vacuums=vacuums,
        rows=rows, dead_percent=dead, free_percent=free,
    )  # fmt: skip


def _mb(size: int) -> str:
    return f"{size / (1 << 20):.1f} MB"
