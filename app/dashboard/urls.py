from django.urls import path

from app.dashboard.views import SpendView

app_name = "dashboard"
urlpatterns = [path("", SpendView.as_view(), name="spend")]
