"""How log lines look: one JSON object per line for machines, aligned text for people.

What others sent can stand in a line and never make one: line breaks, colours and whatever else steers a terminal are
written out. A traceback has lines of its own, all indented, so that none of them can pass for an entry of the log.
"""

import io
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog
from structlog.typing import ExcInfo

from scheduler.fields import written_out

_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def _write_out(_: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A processor: every text of an entry, which may hold what somebody sent."""
    for key, value in line.items():
        if key not in ("exc_info", "stack"):
            line[key] = written_out(value if isinstance(value, str) else str(value))
    return line


def _indented_traceback(stream: TextIO, exc_info: ExcInfo) -> None:
    # Plain: the stock traceback prints local variables, and with them tokens and bodies of requests.
    plain = io.StringIO()
    structlog.dev.plain_traceback(plain, exc_info)
    stream.write("\n".join(f"    {written_out(line)}" for line in plain.getvalue().split("\n")))


def logging_config(*, as_json: bool, level: str) -> dict[str, Any]:
    """Django's LOGGING: structlog's lines and those of the standard library come out in one form, on stderr."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    last: list[Any] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if as_json
        else [
            _write_out,
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=_indented_traceback),
        ]
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": _SHARED,
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
            },
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django.server": {"handlers": ["stderr"], "propagate": False},
            # Two lines for every task, the sweep of each second included, would bury what matters.
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
        },
    }
