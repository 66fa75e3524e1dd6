from django.urls import path

from app.dashboard.statement_pages import StatementCsvView, StatementJsonView, StatementsView, StatementView
from app.dashboard.views import SpendView

app_name = "dashboard"
urlpatterns = [
    path("", SpendView.as_view(), name="spend"),
    path("statements/", StatementsView.as_view(), name="statements"),
    path("statements/<uuid:statement_id>/", StatementView.as_view(), name="statement"),
    path("statements/<uuid:statement_id>/statement.csv", StatementCsvView.as_view(), name="statement-csv"),
    path("statements/<uuid:statement_id>/statement.json", StatementJsonView.as_view(), name="statement-json"),
]
