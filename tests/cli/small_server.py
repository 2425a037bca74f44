"""A small HTTP server that answers what a test told it to, and remembers what it was asked."""

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "let-me-in"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, as it came."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: Mapping[str, str]
    text: str

    @property
    def body(self) -> Any:
        """The JSON that was sent."""
        return json.loads(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What to answer: JSON, or text of a type of its own, which may come in pieces."""

    status: int = 200
    json: Any = None
    pieces: Iterable[str] = ()
    media: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


type Answering = Callable[[Asked], Answer]


def refusal(status: int, code: str, message: str, problems: Iterable[Any] = (), **headers: str) -> Answer:
    """A refusal in the API's one form."""
    error = {"code": code, "message": message, "problems": list(problems)}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, json={"error": error}, headers=named)


def stream(*pieces: str) -> Answer:
    """Server-sent events that end after these pieces."""
    return Answer(pieces=pieces, media="text/event-stream")


def sent_event(number: int, kind: str, **fields: Any) -> str:
    """One event as it stands in a stream."""
    return f"id: {number}\ndata: {json.dumps({kind: fields})}\n\n"


class SmallServer:
    """Answers by method and path below /api/v1. Several answers to one path are given in turn, the last for ever."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._answers: dict[str, list[Answering]] = defaultdict(list)
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def on(self, what: str, answer: Any = None, *, status: int = 200) -> None:
        """`on("GET queues", {"queues": []})`: an object, an Answer, or a function of what was asked."""
        if callable(answer):
            self._answers[what].append(answer)
        else:
            made = answer if isinstance(answer, Answer) else Answer(status=status, json=answer)
            self._answers[what].append(lambda _: made)

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        if asked.headers.get("Authorization") != f"Bearer {TOKEN}":
            return refusal(401, "unauthenticated", "The token is unknown or has expired.")
        answers = self._answers.get(f"{asked.method} {asked.path}")
        if not answers:
            return refusal(404, "not_found", f"There is nothing at {asked.path}.")
        return (answers.pop(0) if len(answers) > 1 else answers[0])(asked)

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def _handler_of(server: SmallServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            address = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            asked = Asked(
                method=self.command,
                path=unquote(address.path).removeprefix("/api/v1/"),
                query=parse_qs(address.query, keep_blank_values=True),
                headers=dict(self.headers),
                text=self.rfile.read(length).decode(),
            )
            self._send(server.answer(asked))

        do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815  as the class has it

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.media)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            for piece in answer.pieces or ([] if answer.json is None else [json.dumps(answer.json)]):
                self.wfile.write(piece.encode())
                self.wfile.flush()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  as the class has it
            """Nothing: tests say what went wrong."""

    return Handler
