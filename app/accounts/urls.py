from django.contrib.auth.views import LogoutView
from django.urls import path

from app.accounts.views import SignInView

app_name = "accounts"
urlpatterns = [
    path("login/", SignInView.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
]
