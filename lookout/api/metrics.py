"""GET /metrics: for Prometheus, with the token of somebody who may read, like everything else."""

from django.http import HttpResponse
from rest_framework.request import Request

from lookout.api.endpoint import Endpoint
from lookout.exposition import CONTENT_TYPE, exposition
from scheduler.configured import configuration
from scheduler.queries.measurements import measure


class Metrics(Endpoint):
    """Measured when it is asked for: nothing is kept between two scrapes."""

    schema = None
    http_method_names = ["get", "head"]  # noqa: RUF012  as the framework has it

    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(exposition(measure(config=configuration())), content_type=CONTENT_TYPE)
