"""The tables of sessions and their transcripts."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Creates them."""

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Session",
            fields=[
                ("id", models.CharField(max_length=255, primary_key=True, serialize=False)),
                (
                    "owner",
                    models.CharField(blank=True, help_text="The principal it belongs to.", max_length=255, null=True),
                ),
                ("cwd", models.TextField(verbose_name="directory")),
                ("directories", models.TextField(default="[]", editable=False)),
                ("title", models.TextField(blank=True, null=True)),
                ("created_at", models.DateTimeField(editable=False, verbose_name="created")),
                ("updated_at", models.DateTimeField(editable=False, verbose_name="last changed")),
                ("mode", models.CharField(blank=True, editable=False, max_length=255, null=True)),
                ("options", models.TextField(default="{}", editable=False)),
                ("state", models.TextField(default="{}", help_text="What the agent keeps for it, JSON.")),
                ("holder", models.PositiveBigIntegerField(default=1, editable=False)),
                ("turn", models.BooleanField(default=False, editable=False, verbose_name="in a turn")),
            ],
            options={
                "indexes": [models.Index(fields=["owner", "-updated_at", "-id"], name="acp_sessions_listed")],
            },
        ),
        migrations.CreateModel(
            name="Entry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.BigIntegerField()),
                ("kind", models.CharField(max_length=8)),
                ("cut", models.BooleanField(default=False)),
                ("update", models.TextField()),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="entries",
                        to="acp_sessions.session",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "entries",
                "constraints": [
                    models.UniqueConstraint(fields=("session", "number"), name="acp_sessions_entry_number")
                ],
            },
        ),
    ]
