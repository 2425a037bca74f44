"""Addresses of /api/v1."""

from django.urls import path

from lookout.api.v1.me import MeEndpoint, SignInLinks
from lookout.api.v1.openapi import OpenApi

urlpatterns = [
    path("openapi.json", OpenApi.as_view()),
    path("me", MeEndpoint.as_view()),
    path("sign-in-links", SignInLinks.as_view()),
]
