"""Addresses: pages for people, the API for programs, /healthz and /metrics for whoever supervises and watches."""

from django.urls import include, path
from django.views.generic import RedirectView

from lookout.api.metrics import Metrics
from lookout.pages import (
    choices,
    cordons,
    find,
    fleet,
    health,
    job,
    jobs,
    life,
    policies,
    policy_edit,
    queues,
    sign_in,
)
from lookout.pages.life_words import Word

# What is about several or makes something new lies outside of its place: a policy or a queue may be called "new".
urlpatterns = [
    path("", RedirectView.as_view(pattern_name="jobs"), name="start"),
    path("healthz", health.healthz, name="healthz"),
    path("metrics", Metrics.as_view(), name="metrics"),
    path("sign-in", sign_in.sign_in, name="sign-in"),
    path("sign-in/<str:secret>", sign_in.link, name="sign-in-link"),
    path("sign-out", sign_in.sign_out, name="sign-out"),
    path("choices", choices.choose, name="choices"),
    path("find", find.find, name="find"),
    path("jobs", jobs.jobs, name="jobs"),
    path("filter-form", jobs.filter_form, name="filter-form"),
    path("jobs/<str:job_id>", job.job, name="job"),
    path("jobs/<str:job_id>/cancel", life.of_job, {"word": Word.CANCEL}, name="cancel-job"),
    path("jobs/<str:job_id>/reprioritize", life.of_job, {"word": Word.REPRIORITIZE}, name="reprioritize-job"),
    path("jobs/<str:job_id>/preempt", life.of_job, {"word": Word.PREEMPT}, name="preempt-job"),
    path("cancel-jobs", life.of_selection, {"word": Word.CANCEL}, name="cancel-jobs"),
    path("reprioritize-jobs", life.of_selection, {"word": Word.REPRIORITIZE}, name="reprioritize-jobs"),
    path("preempt-jobs", life.of_selection, {"word": Word.PREEMPT}, name="preempt-jobs"),
    path("jobs/<str:job_id>/spec", job.job_spec, name="job-spec"),
    path("runs/<uuid:run_id>/output", job.output_of_run, name="run-output"),
    path("policies", policies.policies, name="policies"),
    path("new-policy", policy_edit.new_policy, name="new-policy"),
    path("check-policy", policy_edit.check_policy, name="check-policy"),
    path("policies/<str:name>", policies.policy, name="policy"),
    path("policies/<str:name>/edit", policy_edit.edit_policy, name="edit-policy"),
    path("policies/<str:name>/delete", policies.remove_policy, name="delete-policy"),
    path("queues", queues.queues, name="queues"),
    path("new-queue", queues.new_queue, name="new-queue"),
    path("attach-policy", queues.attach_to_chosen, name="attach-any"),
    path("queues/<str:name>", queues.queue, name="queue"),
    path("queues/<str:name>/edit", queues.edit_queue, name="edit-queue"),
    path("queues/<str:name>/policies", queues.attach, name="attach-policies"),
    path("queues/<str:name>/cordon", cordons.of_queue, name="cordon-queue"),
    path("queues/<str:name>/delete", queues.remove_queue, name="delete-queue"),
    path("fleet", fleet.fleet, name="fleet"),
    # Agents name their executors and nodes, with slashes if they like.
    path("executors/<path:name>/nodes/<path:node>/cordon", cordons.of_node, name="cordon-node"),
    path("executors/<path:name>/cordon", cordons.of_executor, name="cordon-executor"),
    path("executors/<path:name>/delete", cordons.remove_executor, name="delete-executor"),
    path("api/", include("lookout.api.urls")),
    path("lookout/", include("lookout.api.armada.urls")),
]
