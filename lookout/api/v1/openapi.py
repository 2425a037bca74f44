"""The description of the API as OpenAPI, drawn from the endpoints themselves."""

from functools import cache
from typing import Any

from django.urls import include, path
from drf_spectacular.generators import SchemaGenerator
from rest_framework.request import Request
from rest_framework.response import Response

from lookout.api.endpoint import Endpoint, answer


@cache
def openapi() -> dict[str, Any]:
    """The whole description. The same in every process of one version."""
    patterns = [path("api/", include("lookout.api.urls"))]
    generator = SchemaGenerator(patterns=patterns)  # type: ignore[no-untyped-call]
    schema: dict[str, Any] = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return schema


class OpenApi(Endpoint):
    """The description itself. It holds no secret, so nobody has to sign in."""

    permission_classes = ()
    schema = None

    def get(self, request: Request) -> Response:
        """This document."""
        return answer(openapi())
