"""The web application for gunicorn: `gunicorn lookout.wsgi`."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lookout.settings")
application = get_wsgi_application()
