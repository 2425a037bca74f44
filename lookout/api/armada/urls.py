"""Addresses of Armada's Lookout, below /lookout/."""

from django.urls import path, re_path

from lookout.api.armada.endpoints import (
    JobError,
    JobGroups,
    Jobs,
    JobSpec,
    NothingOfLookout,
    RunDebugMessage,
    RunError,
    RunTerminationReason,
)

urlpatterns = [
    path("api/v1/jobs", Jobs.as_view()),
    path("api/v1/jobGroups", JobGroups.as_view()),
    path("api/v1/jobSpec", JobSpec.as_view()),
    path("api/v1/jobError", JobError.as_view()),
    path("api/v1/jobRunError", RunError.as_view()),
    path("api/v1/jobRunDebugMessage", RunDebugMessage.as_view()),
    path("api/v1/jobRunSchedulerTerminationReason", RunTerminationReason.as_view()),
    re_path(r"", NothingOfLookout.as_view()),
]
