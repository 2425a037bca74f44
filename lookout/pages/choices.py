"""How a person wants pages to look: theme, row height and keys, kept in cookies of this browser."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

_KNOWN = {"theme": ("light", "dark"), "density": ("compact",), "keys": ("off",)}
_YEAR = 365 * 24 * 3600


@dataclass(frozen=True, kw_only=True, slots=True)
class Choices:
    """What was chosen; empty is the default."""

    theme: str = ""
    density: str = ""
    keys: str = ""


def choices_of(request: HttpRequest) -> Choices:
    """The choices of this browser. A cookie nobody of us wrote counts as no choice."""
    kept = {name: request.COOKIES.get(f"tack_{name}", "") for name in _KNOWN}
    return Choices(**{name: value for name, value in kept.items() if value in _KNOWN[name]})


@require_POST
def choose(request: HttpRequest) -> HttpResponse:
    """Keep the choices and go back to where they were made."""
    response = redirect(next_of(request))
    for name, known in _KNOWN.items():
        value = request.POST.get(name, "")
        if value in known:
            response.set_cookie(f"tack_{name}", value, max_age=_YEAR, samesite="Lax", httponly=True)
        else:
            response.delete_cookie(f"tack_{name}", samesite="Lax")
    return response


def next_of(request: HttpRequest) -> str:
    """Where a form wants to go afterwards, when that is one of our own addresses; else the start."""
    wanted = request.POST.get("next") or request.GET.get("next") or "/"
    here = {request.get_host()}
    is_ours = url_has_allowed_host_and_scheme(wanted, here, require_https=request.is_secure())
    return (
        wanted if is_ours and "/" in wanted else "/"
    )  # without a slash it would count as the name of a view
