from django.apps import AppConfig


class CommonConfig(AppConfig):
    name = "app.common"
    label = "common"
