"""Django settings. The environment is read here and nowhere else; each variable is named where it is read.

Without DATABASE_URL and BROKER_URL, the addresses that `tack up` left under `var/` are used, so that
`./tack manage shell` works beside a running Tack with nothing typed first.
"""

import os
import secrets
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.utils.csp import CSP

from lookout.addresses import parse_database_url
from lookout.logs import logging_config

CHECKOUT = Path(__file__).resolve().parent.parent
VAR = Path(os.environ.get("TACK_VAR") or CHECKOUT / "var")
"""TACK_VAR: the folder of everything Tack writes."""


def _kept(name: str) -> str:
    """The first line of a file that `tack up` keeps under var/, or nothing where it may not be read."""
    try:
        return (VAR / name).read_text().strip()
    except OSError:
        return ""


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "").lower() in ("1", "true", "yes", "on")


def _count(variable: str) -> int:
    """A whole number; 0 where there is none."""
    text = os.environ.get(variable, "").strip() or "0"
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise ImproperlyConfigured(f"{variable} takes a whole number such as 8, not {text[:40]!r}.")
    return int(text)


def _log_level() -> str:
    """TACK_LOG_LEVEL: DEBUG, INFO, WARNING or ERROR."""
    level, known = os.environ.get("TACK_LOG_LEVEL") or "INFO", ("DEBUG", "INFO", "WARNING", "ERROR")
    if level not in known:
        raise ImproperlyConfigured(f"TACK_LOG_LEVEL is one of {', '.join(known)}, not {level[:40]!r}.")
    return level


DEBUG = _is_on("TACK_DEBUG")
"""TACK_DEBUG=1: Django's error pages with source and settings. Never where others can reach the port."""

SECRET_KEY = os.environ.get("TACK_SECRET_KEY") or _kept("secret") or secrets.token_urlsafe(48)
"""TACK_SECRET_KEY signs sessions. Without one every process makes its own, good for tests and commands only."""
SECRET_KEY_IS_SHARED = bool(os.environ.get("TACK_SECRET_KEY") or _kept("secret"))
"""Another process of this Tack has the same; lookout.wsgi serves nobody without."""

ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
ALLOWED_HOSTS += [host for host in os.environ.get("TACK_ALLOWED_HOSTS", "").split(",") if host]
"""TACK_ALLOWED_HOSTS: names, separated by commas, under which the dashboard is served besides loopback."""

HTTPS = _is_on("TACK_HTTPS")
"""TACK_HTTPS=1: people reach Tack over https only, so cookies are sent over nothing else."""
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in ALLOWED_HOSTS] if HTTPS else []


def _public_url() -> str:
    names = [host for host in ALLOWED_HOSTS[3:] if host[0] not in ".*"]
    behind_a_proxy = f"https://{names[0]}" if HTTPS and names else ""
    return os.environ.get("TACK_URL") or behind_a_proxy or _kept("url")


PUBLIC_URL = _public_url().rstrip("/")
"""TACK_URL: where people reach Tack, for links that commands print. Without it the first allowed host over https,
or the address of the `tack up` that runs here; empty where nobody knows."""

TACK_CONFIG = os.environ.get("TACK_CONFIG") or (
    str(VAR / "tack.yaml") if (VAR / "tack.yaml").exists() else ""
)
"""TACK_CONFIG: path of the configuration file of the scheduler; empty means the defaults of scheduler.config."""

BROKER_URL = os.environ.get("BROKER_URL") or _kept("broker.url") or "memory://"
"""BROKER_URL: Celery's address of the broker."""

DATABASE = parse_database_url(os.environ.get("DATABASE_URL") or _kept("database.url") or "postgresql:///tack")
DATABASES = {
    "default": DATABASE.for_django(
        # TACK_DATABASE_POOL: connections a process keeps open for its threads; commands do better without a pool.
        pool_size=_count("TACK_DATABASE_POOL"),
        # TACK_STATEMENT_SECONDS: the longest a statement may take; web processes set it, see lookout.wsgi.
        statement_seconds=_count("TACK_STATEMENT_SECONDS"),
    ),
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "scheduler",
    "lookout",
]

MIDDLEWARE = [
    "lookout.doorway.Doorway",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "lookout.urls"
WSGI_APPLICATION = "lookout.wsgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [CHECKOUT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

LOGIN_URL = "/sign-in"
LOGIN_REDIRECT_URL = "/"
SESSION_ENGINE = "lookout.sessions"
SESSION_COOKIE_NAME = "tack_session"
SESSION_COOKIE_AGE = 14 * 24 * 3600
PASSWORD_HASHERS = ["django.contrib.auth.hashers.ScryptPasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

# Everything a page needs comes from this server; nothing inline, so that text of a job can never become script.
SECURE_CSP = {
    "default-src": [CSP.SELF],
    "script-src": [CSP.SELF],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF],
    "connect-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "base-uri": [CSP.NONE],
    "object-src": [CSP.NONE],
    "frame-ancestors": [CSP.NONE],
}
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Tack",
    "DESCRIPTION": "Queues, retry policies, jobs, their runs, decisions and events.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
}

TACK_LONG_POLLS = _count("TACK_LONG_POLLS") or 8
"""TACK_LONG_POLLS: agents that may wait for work in one web process at once, each in a thread of its own. Keep it
well under the number of threads; agents beyond it are told to ask again a little later."""

TACK_READS_PER_MINUTE = _count("TACK_READS_PER_MINUTE") or 600
"""TACK_READS_PER_MINUTE: lists, exports and statistics of the history that one person may ask a web process for; single
jobs and runs, and events, ten times as often each. Beyond it, 429."""

# TACK_LOG=json: one JSON object per line; anything else, and by default, lines for people.
LOGGING = logging_config(as_json=os.environ.get("TACK_LOG") == "json", level=_log_level())
