"""One HTTP connection to Tack: requests with the token and time limits, refusals as exceptions."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from lookout.wire.credentials import Credentials
from lookout.wire.decoding import Undecodable, decode
from lookout.wire.errors import (
    REFUSALS,
    AddressInvalid,
    Busy,
    NothingAnswers,
    Problem,
    Refused,
    TooSlow,
    UnexpectedAnswer,
    Unsendable,
)

CONNECT_SECONDS = 5.0
_SHOWN_OF_A_STRANGE_ANSWER = 80
NO_TEXT = "a name or text in it holds bytes that are no UTF-8"


class Connection:
    """Asks Tack and answers with JSON, or raises a TackError. Not for use by several threads at once."""

    def __init__(self, credentials: Credentials, *, timeout_seconds: float) -> None:
        self.url = credentials.url
        self.timeout_seconds = timeout_seconds
        self._http = httpx.Client(
            base_url=_base(credentials.url),
            headers={"Authorization": f"Bearer {credentials.token}"} if credentials.token else {},
            timeout=httpx.Timeout(timeout_seconds, connect=CONNECT_SECONDS),
            # A proxy of the environment cannot reach this machine's loopback.
            trust_env=not _is_loopback(credentials.url),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the sockets. Twice does no harm."""
        self._http.close()

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        text: tuple[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The JSON of the answer, or None where it has no body. `body` is sent as JSON, `text` as (media type, text)."""
        answer = self._send(method, path, query=query, body=body, text=text, headers=headers)
        if not answer.content:
            return None
        try:
            return answer.json()
        except (ValueError, RecursionError) as error:
            raise UnexpectedAnswer(self.url, _start_of(answer)) from error

    def ask_for[T](self, kind: type[T], method: str, path: str, **request: Any) -> T:
        """The answer as a value of that kind."""
        return self.read(kind, self.ask(method, path, **request))

    def ask_for_text(self, path: str, *, query: Mapping[str, Any] | None = None) -> str:
        """The answer's text, as it is."""
        return self._send("GET", path, query=query).text

    def pieces(self, path: str, *, query: Mapping[str, Any]) -> Iterator[str]:
        """The text of a long answer, as it comes. Raises UnexpectedAnswer where it breaks off."""
        with (
            self.stream(path, query=query, headers={}, silence_seconds=self.timeout_seconds) as answer,
            self._told(),
        ):
            yield from answer.iter_text()

    def read[T](self, kind: type[T], answer: object) -> T:
        """Part of an answer as a value. Raises UnexpectedAnswer."""
        try:
            return decode(kind, answer)
        except Undecodable as error:
            raise UnexpectedAnswer(self.url, str(error)) from error

    @contextmanager
    def stream(
        self, path: str, *, query: Mapping[str, Any], headers: Mapping[str, str], silence_seconds: float
    ) -> Iterator[httpx.Response]:
        """A GET whose answer is read as it comes. The reader meets httpx's errors: what they mean is its business."""
        timeout = httpx.Timeout(self.timeout_seconds, connect=CONNECT_SECONDS, read=silence_seconds)
        with self._told():
            asked = self._http.build_request(
                "GET", path, params=_tidy(query), headers=headers, timeout=timeout
            )
            answer = self._http.send(asked, stream=True)
        try:
            if not answer.is_success:
                answer.read()
                raise _refusal(self.url, answer)
            yield answer
        finally:
            answer.close()

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        text: tuple[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        media, content = _content(body, text)
        with self._told():
            answer = self._http.request(
                method,
                path,
                params=_tidy(query or {}),
                content=content,
                headers={"Accept": "application/json", **media, **(headers or {})},
            )
        if not answer.is_success:
            raise _refusal(self.url, answer)
        return answer

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of the network, and of what was to be sent, as sentences."""
        try:
            yield
        except UnicodeEncodeError as error:
            raise Unsendable(NO_TEXT) from error
        except httpx.InvalidURL as error:
            raise AddressInvalid(self.url) from error
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise NothingAnswers(self.url) from error
        except httpx.TimeoutException as error:
            raise TooSlow(self.url, seconds=self.timeout_seconds) from error
        except httpx.RequestError as error:
            raise UnexpectedAnswer(self.url, str(error) or type(error).__name__) from error


def _base(url: str) -> httpx.URL:
    try:
        return httpx.URL(f"{url}/api/v1/")
    except (httpx.InvalidURL, UnicodeError) as error:
        raise AddressInvalid(url) from error


def _content(body: object, text: tuple[str, str] | None) -> tuple[dict[str, str], bytes | None]:
    """Header and bytes of what is sent. Raises Unsendable."""
    try:
        if text:
            return {"Content-Type": f"{text[0]}; charset=utf-8"}, text[1].encode()
        if body is None:
            return {}, None
        return {"Content-Type": "application/json"}, json.dumps(body, allow_nan=False).encode()
    except UnicodeEncodeError as error:
        raise Unsendable(NO_TEXT) from error
    except RecursionError as error:
        raise Unsendable("it is nested too deep") from error
    except ValueError as error:  # a number that is none, or has thousands of digits
        raise Unsendable("it holds a number that is none, or too large a one") from error
    except TypeError as error:
        raise Unsendable(f"it is no JSON ({error})") from error


def _refusal(url: str, answer: httpx.Response) -> Exception:
    try:
        told = answer.json()["error"]
        problems = tuple(decode(Problem, problem) for problem in told.get("problems") or ())
        kind = REFUSALS.get(answer.status_code, Refused)
        refused = kind(
            status=answer.status_code, code=told["code"], message=told["message"], problems=problems
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return UnexpectedAnswer(url, f"status {answer.status_code}, {_start_of(answer)}")
    if isinstance(refused, Busy):
        refused.retry_after_seconds = _seconds(answer.headers.get("Retry-After", ""))
    return refused


def _start_of(answer: httpx.Response) -> str:
    start = " ".join(answer.text[:_SHOWN_OF_A_STRANGE_ANSWER].split())
    return f"'{start}…'" if start else "with nothing in it"


def _seconds(text: str) -> float:
    return float(text) if text.isdigit() else Busy.retry_after_seconds


def _tidy(query: Mapping[str, Any]) -> dict[str, Any]:
    """Without what was not asked for; true and false as words, lists as repeated names."""
    words = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}
    return {name: value for name, value in words.items() if value not in (None, "", (), [], "false")}


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
