"""Routes of the CRUD tier. Stream routes never reach Django: see `app.asgi`."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("accounts/", include("app.accounts.urls")),
    path("dashboard/", include("app.dashboard.urls")),
    path("", include("app.api.urls")),
    path("", include("app.chat.urls")),
]
