"""Names to choose from: queues, policies, and the categories that executors report."""

from scheduler.models import Executor, Queue, RetryPolicy


def queue_names() -> list[str]:
    """Every queue, by name; one query."""
    return list(Queue.objects.order_by("name").values_list("name", flat=True))


def policy_names() -> list[str]:
    """Every policy, by name; one query."""
    return list(RetryPolicy.objects.order_by("name").values_list("name", flat=True))


def reported_categories() -> list[str]:
    """Names of categories, each once: by executor, then in the order it reports them; one query."""
    reported = Executor.objects.order_by("name").values_list("categories", flat=True)
    return list(dict.fromkeys(category["name"] for categories in reported for category in categories))
