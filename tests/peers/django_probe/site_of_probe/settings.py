import sys
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
sys.path.append(str(BASE_DIR.parents[2]))  # the repository, for `examples`

SECRET_KEY = "only for tests"
INSTALLED_APPS = ["acp_django", "site_of_probe"]
ROOT_URLCONF = "acp_django.urls"
ASGI_APPLICATION = "site_of_probe.asgi.application"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
USE_TZ = True
