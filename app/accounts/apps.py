from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "app.accounts"
    label = "accounts"
