from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "app.audit"
    label = "audit"
