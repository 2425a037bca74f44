"""Retry policies and their immutable, numbered versions."""

from django.db import models
from django.db.models import CompositePrimaryKey

from policies.documents import policy_from_object
from policies.policy import Policy


class RetryPolicy(models.Model):
    """A policy's name and its current version. The documents are in the versions."""

    name = models.CharField(max_length=63, primary_key=True)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class RetryPolicyVersion(models.Model):
    """One published document of a policy. Never changed, kept when the policy is deleted."""

    pk = CompositePrimaryKey("policy_name", "version")
    policy_name = models.CharField(max_length=63)
    version = models.PositiveIntegerField()
    document = models.JSONField()
    """The policy as a document object, as `policies.documents.policy_document` writes it."""
    text = models.TextField(blank=True)
    """The document as its author typed it; empty when it came as an object."""
    note = models.TextField(blank=True)
    author = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["policy_name", "-version"]

    def __str__(self) -> str:
        return f"{self.policy_name} (version {self.version})"

    def to_policy(self) -> Policy:
        """The policy as a value. Raises DocumentInvalid when the stored document cannot be read."""
        return policy_from_object(self.document)
