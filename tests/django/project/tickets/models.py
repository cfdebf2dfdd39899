from django.db import models

print("printed while a model is imported")


class Ticket(models.Model):
    title = models.CharField(max_length=200)
