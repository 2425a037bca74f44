"""States of jobs and runs, and the words the history uses."""

from enum import StrEnum


class JobState(StrEnum):
    """Where a job stands. A job keeps its id through every retry."""

    QUEUED = "queued"
    LEASED = "leased"
    PENDING = "pending"
    RUNNING = "running"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PREEMPTED = "preempted"
    REJECTED = "rejected"

    @property
    def is_terminal(self) -> bool:
        """Nothing follows."""
        return self in TERMINAL_JOB_STATES


ACTIVE_JOB_STATES = (JobState.LEASED, JobState.PENDING, JobState.RUNNING, JobState.CANCELLING)
"""States of a job that has a run on an executor."""
TERMINAL_JOB_STATES = (
    JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.PREEMPTED, JobState.REJECTED,
)  # fmt: skip


class RunState(StrEnum):
    """Where one try of a job on one node stands."""

    LEASED = "leased"
    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PREEMPTED = "preempted"
    LEASE_RETURNED = "lease_returned"
    LEASE_EXPIRED = "lease_expired"

    @property
    def is_active(self) -> bool:
        """The run has not ended."""
        return self in ACTIVE_RUN_STATES


ACTIVE_RUN_STATES = (RunState.LEASED, RunState.PENDING, RunState.RUNNING)
FAILED_RUN_STATES = (RunState.FAILED, RunState.LEASE_EXPIRED)
"""Ends that are failures, with or without a category."""


class UndecidedBecause(StrEnum):
    """Why a run that ended badly was settled without the retry engine (the legacy path)."""

    FLAG_OFF = "flag_off"
    NO_POLICY = "no_policy"
    GANG = "gang"
    FAIL_FAST = "fail_fast"
    LEASE_RETURN = "lease_return"
    POLICY_UNREADABLE = "policy_unreadable"
    CANCELLED = "cancelled"
    PREEMPTED = "preempted"


class EventKind(StrEnum):
    """What clients see of a job, named as on the wire."""

    SUBMITTED = "submitted"
    QUEUED = "queued"
    LEASED = "leased"
    LEASE_RETURNED = "leaseReturned"
    LEASE_EXPIRED = "leaseExpired"
    PENDING = "pending"
    RUNNING = "running"
    FAILED = "failed"
    SUCCEEDED = "succeeded"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    PREEMPTING = "preempting"
    PREEMPTED = "preempted"
    REPRIORITIZING = "reprioritizing"
    REPRIORITIZED = "reprioritized"


class ChangeKind(StrEnum):
    """What people do that the change log keeps."""

    CREATE_QUEUE = "create_queue"
    UPDATE_QUEUE = "update_queue"
    DELETE_QUEUE = "delete_queue"
    CREATE_POLICY = "create_retry_policy"
    UPDATE_POLICY = "update_retry_policy"
    DELETE_POLICY = "delete_retry_policy"
    ATTACH_POLICIES = "attach_retry_policies"
    CANCEL_JOBS = "cancel_jobs"
    REPRIORITIZE_JOBS = "reprioritize_jobs"
    PREEMPT_JOBS = "preempt_jobs"
    CORDON_QUEUE = "cordon_queue"
    CORDON_EXECUTOR = "cordon_executor"
    CORDON_NODE = "cordon_node"
    DELETE_EXECUTOR = "delete_executor"
