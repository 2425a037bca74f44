"""The web application for gunicorn: `gunicorn lookout.wsgi`."""

import os

from django.core.wsgi import get_wsgi_application

from lookout.api.closing import watch_sigterm

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lookout.settings")
# A slow question must not keep a thread for ever; whoever waits for an answer has long gone by then.
os.environ.setdefault("TACK_STATEMENT_SECONDS", "20")
application = get_wsgi_application()

# gunicorn loads this in the main thread of each process, after it has set its own handlers.
watch_sigterm()
