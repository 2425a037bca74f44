"""Properties are about results: a busy machine must not fail them."""

from hypothesis import settings

settings.register_profile("unhurried", settings.get_profile("default"), deadline=None)
settings.load_profile("unhurried")
