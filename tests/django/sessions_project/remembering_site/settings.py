import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = "only-for-tests"
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "acp_django",
    "acp_django.sessions",
    "remembering_site",
]
ROOT_URLCONF = "remembering_site.urls"
ASGI_APPLICATION = "remembering_site.asgi.application"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("DATABASE", BASE_DIR / "db.sqlite3"),
        "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE"},
    }
}
if "PROBE_POSTGRESQL" in os.environ:
    DATABASES["default"] = {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ["PROBE_POSTGRESQL"],
        "NAME": "postgres",
        "USER": "tester",
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
ACP = {"agent": {"session-store": "django", "transport.http.require-auth": False}}
