"""Addresses below /api/: ours, the agents', and one answer for everything else."""

from django.urls import include, path, re_path

from lookout.api.endpoint import NothingHere

urlpatterns = [
    path("v1/", include("lookout.api.v1.urls")),
    path("executor/v1/", include("lookout.api.executor.urls")),
    re_path(r"", NothingHere.as_view()),
]
