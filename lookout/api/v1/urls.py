"""Addresses of /api/v1."""

from django.urls import path

from lookout.api.v1.cancellation import Cancellation
from lookout.api.v1.cordons import ExecutorCordon, NodeCordon, QueueCordon
from lookout.api.v1.events import Events
from lookout.api.v1.executors import ExecutorEndpoint, Executors
from lookout.api.v1.exports import DecisionsExport, JobsExport, RunsExport
from lookout.api.v1.jobs import JobEndpoint, Jobs
from lookout.api.v1.me import MeEndpoint, SignInLinks
from lookout.api.v1.openapi import OpenApi
from lookout.api.v1.preemption import Preemption
from lookout.api.v1.queues import QueueEndpoint, QueuePolicies, Queues
from lookout.api.v1.reprioritisation import Reprioritisation
from lookout.api.v1.retry_policies import (
    RetryPolicies,
    RetryPolicyCheck,
    RetryPolicyEndpoint,
    VersionEndpoint,
    Versions,
)
from lookout.api.v1.runs import Decisions, RunEndpoint, RunOutputEndpoint, Runs
from lookout.api.v1.statistics import FailureDays, FailureGroups, HeatMapEndpoint, JobGroups, Retries
from lookout.api.v1.waiting import QueueWaiting

urlpatterns = [
    path("openapi.json", OpenApi.as_view()),
    path("me", MeEndpoint.as_view()),
    path("sign-in-links", SignInLinks.as_view()),
    path("queues", Queues.as_view()),
    path("queues/<str:name>", QueueEndpoint.as_view()),
    path("queues/<str:name>/cordon", QueueCordon.as_view()),
    path("queues/<str:name>/waiting", QueueWaiting.as_view()),
    path("queues/<str:name>/retry-policies", QueuePolicies.as_view()),
    path("retry-policies", RetryPolicies.as_view()),
    path("retry-policies/check", RetryPolicyCheck.as_view()),
    path("retry-policies/<str:name>", RetryPolicyEndpoint.as_view()),
    path("retry-policies/<str:name>/versions", Versions.as_view()),
    path("retry-policies/<str:name>/versions/<int:version>", VersionEndpoint.as_view()),
    path("jobs", Jobs.as_view()),
    path("jobs/cancel", Cancellation.as_view()),
    path("jobs/reprioritize", Reprioritisation.as_view()),
    path("jobs/preempt", Preemption.as_view()),
    path("jobs/groups", JobGroups.as_view()),
    path("jobs/export", JobsExport.as_view()),
    path("jobs/<str:job_id>", JobEndpoint.as_view()),
    path("runs", Runs.as_view()),
    path("runs/export", RunsExport.as_view()),
    path("runs/<str:run_id>", RunEndpoint.as_view()),
    path("runs/<str:run_id>/output", RunOutputEndpoint.as_view()),
    path("decisions", Decisions.as_view()),
    path("decisions/export", DecisionsExport.as_view()),
    path("failures/heatmap", HeatMapEndpoint.as_view()),
    path("failures/groups", FailureGroups.as_view()),
    path("failures/days", FailureDays.as_view()),
    path("stats/retries", Retries.as_view()),
    path("events", Events.as_view()),
    path("executors", Executors.as_view()),
    path("executors/<str:name>", ExecutorEndpoint.as_view()),
    path("executors/<str:name>/cordon", ExecutorCordon.as_view()),
    path("executors/<str:name>/nodes/<str:node>/cordon", NodeCordon.as_view()),
]
