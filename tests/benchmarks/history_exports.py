"""What exports of the whole past cost the process that writes them."""

import resource
import time
from collections.abc import Callable

from lookout.api.v1.export_sources import OF_DECISIONS, OF_JOBS, OF_RUNS, Source
from lookout.api.v1.exports import Export, ExportQuery, Form


def measure_exports(say: Callable[[str], None]) -> None:
    """Exports everything in every form, and prints a line for each."""
    say(f"{'export':<18} {'rows':>9} {'MB':>7} {'CPU s':>7} {'us/row':>7} {'s':>7} {'MB held':>8}")
    for source in (OF_JOBS, OF_RUNS, OF_DECISIONS):
        for form in Form:
            say(_measure(source, form))


def _measure(source: Source, form: Form) -> str:
    began, cpu, rows, size = time.monotonic(), time.process_time(), 0, 0
    export = Export(source, source.listing([], ""), ExportQuery(format=form))
    for part in export:
        rows, size = rows + part.count("\n"), size + len(part.encode())
    export.close()
    took, cpu = time.monotonic() - began, time.process_time() - cpu
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    name = f"{source.grammar.things} as {form}"
    per_row = cpu / max(rows, 1) * 1e6
    return f"{name:<18} {rows:>9,} {size / 1e6:>7.1f} {cpu:>7.2f} {per_row:>7.0f} {took:>7.1f} {held:>8.0f}"
