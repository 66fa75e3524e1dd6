"""Routes of the CRUD tier. Stream routes never reach Django: see `app.asgi`."""

from django.contrib import admin
from django.contrib.staticfiles.storage import staticfiles_storage
from django.urls import include, path
from django.utils.functional import lazy
from django.views.generic import RedirectView

from app.dashboard.my_usage import MyUsageCsvView, MyUsageView

_ICON = lazy(lambda: staticfiles_storage.url("common/icon.svg"), str)()

handler500 = "app.api.failed_page.page_failed"
urlpatterns = [
    # Browsers ask for it on their own, on pages that name no icon too.
    path("favicon.ico", RedirectView.as_view(url=_ICON)),
    path("admin/", admin.site.urls),
    path("accounts/", include("app.accounts.urls")),
    path("accounts/", include("allauth.urls")),
    # How apps sign in: allauth's documented paths, which its clients expect here.
    path("_allauth/", include("allauth.headless.urls")),
    path("dashboard/", include("app.dashboard.urls")),
    # Before the API, whose last route says that there is no such path.
    path("", include("app.ops.urls")),
    path("usage/", MyUsageView.as_view(), name="my-usage"),
    path("usage/usage.csv", MyUsageCsvView.as_view(), name="my-usage-csv"),
    path("", include("app.api.urls")),
    path("", include("app.chat.urls")),
]
