"""What every page shares: the person, the refusals, and one template for the page and its live part."""

import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.cache import add_never_cache_headers, patch_vary_headers
from django_htmx.middleware import HtmxDetails

from lookout.access import actor_of
from lookout.pages.choices import choices_of
from lookout.templatetags.signs import places_in_order
from policies.problems import DocumentInvalid
from scheduler.actors import Actor, NotPermitted
from scheduler.configured import configuration
from scheduler.errors import AlreadyExists, Conflict, Invalid, NotFound, SchedulerError, TooMuchAsked
from scheduler.models.clock import database_now
from scheduler.queries.names import reported_categories


class PageRequest(HttpRequest):
    """A request for a page by somebody who is signed in."""

    htmx: HtmxDetails
    actor: Actor


_STEERING = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")
"""Control characters, as they are in UTF-8: jobs write them, HTML has none, and who reads a page in a terminal is steered."""

type View[**P] = Callable[Concatenate[PageRequest, P], HttpResponse]

_STATUS: dict[type[Exception], tuple[int, str]] = {
    NotFound: (404, "Not found"),
    NotPermitted: (403, "Not allowed"),
    AlreadyExists: (409, "Not done"),
    Conflict: (409, "Not done"),
    Invalid: (400, "Not done"),
    DocumentInvalid: (400, "Not done"),
    TooMuchAsked: (400, "Too much asked"),
}


def page[**P](view: View[P]) -> View[P]:
    """A view for people who are signed in. What a verb or read refuses becomes a page with its sentence."""

    @wraps(view)
    def answered(request: PageRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not request.user.is_authenticated:
            return _to_sign_in(request)
        request.actor = actor_of(request)
        try:
            response = view(request, *args, **kwargs)
        except (SchedulerError, NotPermitted, DocumentInvalid) as error:
            response = refuse(request, error)
        add_never_cache_headers(response)
        patch_vary_headers(response, ["HX-Request", "Cookie"])
        return response

    return answered


def show(
    request: PageRequest,
    template: str,
    context: Mapping[str, Any],
    *,
    place: str,
    part: str = "",
    status: int = 200,
) -> HttpResponse:
    """The page, or only its named part when htmx asks for it. Both are drawn from the same context.

    `now` is the database's clock, unless the page has looked at it already.
    """
    name = f"{template}#{part}" if part and request.htmx else template
    now = context.get("now") or database_now()
    shared = {**_shared(request), "place": place, "now": now}
    response = render(request, name, {**shared, **context}, status=status)
    response.content = _STEERING.sub("\ufffd".encode(), response.content)
    return response


def refuse(request: PageRequest, error: Exception) -> HttpResponse:
    """The page of a refusal: what was not shown or done, and why."""
    status, head = _STATUS.get(type(error), (409, "Not done"))
    place = request.path.strip("/").split("/")[0]
    way_on = (
        (f"/{place}", f"All {place}") if place in ("jobs", "policies", "queues") else ("/", "To the jobs")
    )
    context = {"head": head, "reason": str(error), "way_on": way_on}
    return show(request, "refusal.html", context, place=place, status=status)


def _shared(request: PageRequest) -> dict[str, Any]:
    categories = reported_categories()
    return {
        "actor": request.actor,
        "choices": choices_of(request),
        "categories": categories,
        "category_places": places_in_order(categories),
        "configuration_warnings": configuration().warnings,
    }


def _to_sign_in(request: PageRequest) -> HttpResponse:
    here = request.htmx.current_url_abs_path if request.htmx else request.get_full_path()
    address = f"{reverse('sign-in')}?{urlencode({'next': here or '/'})}"
    if not request.htmx:
        return redirect(address)
    # A part must never be replaced by the sign-in page: the browser goes there as a whole.
    return HttpResponse(status=401, headers={"HX-Redirect": address})
