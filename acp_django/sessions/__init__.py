"""Stored sessions in the project's own database: add `acp_django.sessions` to INSTALLED_APPS, and migrate."""
