"""Addresses of /api/v1."""

from django.urls import path

from lookout.api.v1.executors import ExecutorEndpoint, Executors
from lookout.api.v1.me import MeEndpoint, SignInLinks
from lookout.api.v1.openapi import OpenApi
from lookout.api.v1.queues import QueueEndpoint, QueuePolicies, Queues
from lookout.api.v1.retry_policies import (
    RetryPolicies,
    RetryPolicyCheck,
    RetryPolicyEndpoint,
    VersionEndpoint,
    Versions,
)

urlpatterns = [
    path("openapi.json", OpenApi.as_view()),
    path("me", MeEndpoint.as_view()),
    path("sign-in-links", SignInLinks.as_view()),
    path("queues", Queues.as_view()),
    path("queues/<str:name>", QueueEndpoint.as_view()),
    path("queues/<str:name>/retry-policies", QueuePolicies.as_view()),
    path("retry-policies", RetryPolicies.as_view()),
    path("retry-policies/check", RetryPolicyCheck.as_view()),
    path("retry-policies/<str:name>", RetryPolicyEndpoint.as_view()),
    path("retry-policies/<str:name>/versions", Versions.as_view()),
    path("retry-policies/<str:name>/versions/<int:version>", VersionEndpoint.as_view()),
    path("executors", Executors.as_view()),
    path("executors/<str:name>", ExecutorEndpoint.as_view()),
]
