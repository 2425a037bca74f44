"""The Django app of the scheduler's tables."""

from django.apps import AppConfig


class SchedulerConfig(AppConfig):
    """Jobs, runs, policies and the fleet."""

    name = "scheduler"
    default_auto_field = "django.db.models.BigAutoField"
