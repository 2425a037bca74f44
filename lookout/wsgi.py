"""The web application for gunicorn: `gunicorn lookout.wsgi`."""

import os

from django.core.wsgi import get_wsgi_application

from lookout.api.closing import watch_sigterm

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lookout.settings")
application = get_wsgi_application()

# gunicorn loads this in the main thread of each process, after it has set its own handlers.
watch_sigterm()
