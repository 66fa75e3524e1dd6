from django.apps import AppConfig


class ChatConfig(AppConfig):
    name = "app.chat"
    label = "chat"
