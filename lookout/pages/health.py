"""Whether this web process answers at all; for whoever supervises it."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache


@never_cache
def healthz(_request: HttpRequest) -> HttpResponse:
    """`ok`, asking nobody else: a slow database must not get web processes killed."""
    return HttpResponse("ok\n", content_type="text/plain")
