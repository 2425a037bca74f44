"""What every request passes first and every answer last.

Text is UTF-8, the API refuses in one form, and a database out of reach is no fault of a page.
"""

from collections.abc import Callable
from contextlib import suppress

import structlog
from django.core.exceptions import SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from lookout.api.errors import refusal_body

log = structlog.get_logger(__name__)

_TOLD = {
    400: ("invalid", "The request cannot be read. Look at its address, its headers and the host it names."),
    403: ("not_permitted", "This is not allowed."),
    404: ("not_found", "There is nothing at this address. /api/v1/openapi.json lists what there is."),
}
_FAILED = ("internal", "Tack failed to answer. The log of the web process says why.")


class Doorway:
    """The outermost middleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        # Another charset, named by a header, could bring text that is none: halves of characters, for one.
        with suppress(
            SuspiciousOperation
        ):  # it looks at the parameters, which may be too many: others refuse that
            request.encoding = "utf-8"
        return _in_form(request, self._get_response(request))

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Of pages; the API has answered for itself."""
        if not isinstance(error, OperationalError | InterfaceError):
            return None
        log.warning("The database did not answer", error=str(error))
        return render(request, "503.html", status=503)


def _in_form(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Refusals of the API that came from before its endpoints (the name of the host is wrong) as all others look."""
    is_told = response.headers.get("Content-Type", "").startswith("application/json")
    if response.status_code < 400 or is_told or not request.path.startswith("/api/"):
        return response
    code, message = _TOLD.get(response.status_code, _FAILED)
    return JsonResponse(refusal_body(code, message), status=response.status_code)
