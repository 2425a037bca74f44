"""Addresses of the agents' API."""

from django.urls import path

from lookout.api.executor.endpoints import Heartbeats, ReportsEndpoint, WorkEndpoint

urlpatterns = [
    path("heartbeat", Heartbeats.as_view()),
    path("work", WorkEndpoint.as_view()),
    path("reports", ReportsEndpoint.as_view()),
]
