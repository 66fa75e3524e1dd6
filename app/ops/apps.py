from django.apps import AppConfig


class OpsConfig(AppConfig):
    name = "app.ops"
    label = "ops"
