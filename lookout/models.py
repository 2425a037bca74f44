"""What belongs to people: their roles and groups, tokens for programs, links to sign in with."""

from enum import StrEnum

from django.contrib.auth.models import User
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, F, Q

from scheduler.actors import Role


class Scope(StrEnum):
    """What a token is good for."""

    API = "api"
    """The REST API, as its owner."""
    EXECUTOR = "executor"
    """The executor API, as one executor; nothing else."""


class Profile(models.Model):
    """The role and the groups of a person. A person without one reads."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="profile")
    role = models.CharField(max_length=16, default=Role.READER)
    groups = ArrayField(models.TextField(), default=list, blank=True)
    """Names that queues may list among their group owners and subjects."""

    class Meta:
        constraints = [
            CheckConstraint(name="profile_role_known", condition=Q(role__in=[str(role) for role in Role])),
        ]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.role}"


class Token(models.Model):
    """A secret a program carries. Only the SHA-256 of it is kept: 256 random bits need no salt."""

    hash = models.CharField(max_length=64, primary_key=True, editable=False)
    owner = models.ForeignKey(User, models.CASCADE, related_name="tokens")
    scope = models.CharField(max_length=16)
    executor = models.CharField(max_length=63, blank=True)
    """The one executor an agent's token speaks for; empty for every other scope."""
    note = models.TextField(blank=True)
    """What the token is for, in its owner's words."""
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    """Null: good until it is deleted."""

    class Meta:
        constraints = [
            CheckConstraint(name="token_scope_known", condition=Q(scope__in=[str(scope) for scope in Scope])),
            CheckConstraint(name="token_hash_is_sha256", condition=Q(hash__regex=r"^[0-9a-f]{64}$")),
            CheckConstraint(
                name="token_names_executor_when_agents",
                condition=Q(scope=str(Scope.EXECUTOR)) ^ Q(executor=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scope} token of {self.owner_id}"

    @property
    def public_id(self) -> str:
        """What it is called where it is listed: enough of the hash to tell it from others."""
        return self.hash[:12]


class SignInLink(models.Model):
    """A secret that signs one person in, once."""

    hash = models.CharField(max_length=64, primary_key=True, editable=False)
    user = models.ForeignKey(User, models.CASCADE, related_name="sign_in_links")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    spent_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            CheckConstraint(name="sign_in_link_hash_is_sha256", condition=Q(hash__regex=r"^[0-9a-f]{64}$")),
            CheckConstraint(name="sign_in_link_expires", condition=Q(expires_at__gt=F("created_at"))),
        ]

    def __str__(self) -> str:
        return f"sign-in link of {self.user_id}"
