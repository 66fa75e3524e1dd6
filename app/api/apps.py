from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "app.api"
    label = "api"

    def ready(self) -> None:
        """Tasks are enqueued from many threads; without a default each thread would look for its own broker."""
        from app.celery import app

        app.set_default()
