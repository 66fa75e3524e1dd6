from django.apps import AppConfig


class BillingConfig(AppConfig):
    name = "app.billing"
    label = "billing"
