"""The Django app of what belongs to people: tokens, sign-in links, preferences."""

from django.apps import AppConfig

# Loading the Celery app here makes it the current one in every process that sets Django up, so that a bell
# rung by a page, a command or a test goes to our broker and not to Celery's default.
from lookout import celery

__all__ = ["LookoutConfig", "celery"]


class LookoutConfig(AppConfig):
    name = "lookout"
    label = "lookout"
    verbose_name = "Lookout"
    default_auto_field = "django.db.models.BigAutoField"
