"""The web application for gunicorn: `gunicorn lookout.wsgi`."""

import os

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.wsgi import get_wsgi_application

from lookout.api.closing import watch_sigterm
from scheduler.configured import check_at_start

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lookout.settings")
# A slow question must not keep a thread for ever; whoever waits for an answer has long gone by then.
os.environ.setdefault("TACK_STATEMENT_SECONDS", "20")
if not settings.SECRET_KEY_IS_SHARED:
    # Each process would sign with a key of its own: who signed in at one would be a stranger to the next.
    raise ImproperlyConfigured("Set TACK_SECRET_KEY to a long random text, the same for every web process.")

application = get_wsgi_application()
check_at_start()

# gunicorn loads this in the main thread of each process, after it has set its own handlers.
watch_sigterm()
