from django.apps import AppConfig


class GateConfig(AppConfig):
    name = "app.gate"
    label = "gate"
