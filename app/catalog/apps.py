from django.apps import AppConfig


class CatalogConfig(AppConfig):
    name = "app.catalog"
    label = "catalog"
