"""The embedded stack as a Django app, so that its commands are found."""

from django.apps import AppConfig


class EmbeddedConfig(AppConfig):
    """No models: it must run before there is a database."""

    name = "app.embedded"
    label = "embedded"
