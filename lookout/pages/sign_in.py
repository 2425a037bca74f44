"""Sign in: by name and password, or by a link that works once; and sign out."""

from django.contrib.auth import authenticate, login, logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from lookout.access import SignInLinkSpent, check_sign_in_link, spend_sign_in_link
from lookout.pages.choices import choices_of, next_of
from scheduler.fields import is_line


@sensitive_post_parameters("password")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """The form; sent, it signs in and goes to where the person wanted to be."""
    if request.method != "POST":
        if request.user.is_authenticated:
            return redirect(next_of(request))
        return _form(request, name="", problem="", status=200)
    name = request.POST.get("username", "")
    user = (
        authenticate(request, username=name, password=request.POST.get("password", ""))
        if is_line(name)
        else None
    )
    if user is None:
        return _form(request, name=name, problem="Name and password do not match.", status=400)
    login(request, user)
    return redirect(next_of(request))


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def link(request: HttpRequest, secret: str) -> HttpResponse:
    """A sign-in link. Opening it changes nothing; the button spends it."""
    context = {"choices": choices_of(request), "problem": ""}
    try:
        if request.method != "POST":
            check_sign_in_link(secret)
            return render(request, "sign_in/link.html", context)
        user = spend_sign_in_link(secret)
    except SignInLinkSpent as error:
        return render(request, "sign_in/link.html", {**context, "problem": str(error)}, status=410)
    login(request, user)
    return redirect("/")


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """The end of this browser's session."""
    logout(request)
    return redirect("sign-in")


def _form(request: HttpRequest, *, name: str, problem: str, status: int) -> HttpResponse:
    context = {"name": name, "problem": problem, "next": next_of(request), "choices": choices_of(request)}
    return render(request, "sign_in/form.html", context, status=status)
