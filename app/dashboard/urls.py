from django.urls import path

from app.dashboard.limit_pages import (
    AskView,
    BudgetsView,
    ChangeView,
    DecideView,
    LimitsView,
    PauseView,
    RemoveView,
)
from app.dashboard.server_pages import ServersView, SwitchView, TryView
from app.dashboard.speed_pages import FindView, SpeedView, TurnView
from app.dashboard.statement_pages import StatementCsvView, StatementJsonView, StatementsView, StatementView
from app.dashboard.views import SpendView

app_name = "dashboard"
urlpatterns = [
    path("", SpendView.as_view(), name="spend"),
    path("speed/", SpeedView.as_view(), name="speed"),
    path("speed/find/", FindView.as_view(), name="speed-find"),
    path("speed/turns/<uuid:turn_id>/", TurnView.as_view(), name="speed-turn"),
    path("servers/", ServersView.as_view(), name="servers"),
    path("servers/<uuid:deployment_id>/try/", TryView.as_view(), name="servers-try"),
    path("servers/<uuid:deployment_id>/switch/", SwitchView.as_view(), name="servers-switch"),
    path("limits/", LimitsView.as_view(), name="limits"),
    path("limits/ask/", AskView.as_view(), name="limits-ask"),
    path("limits/set/", BudgetsView.as_view(), name="limits-set"),
    path("limits/pause/", PauseView.as_view(), name="limits-pause"),
    path("limits/requests/<uuid:request_id>/", DecideView.as_view(), name="limits-decide"),
    path("limits/<uuid:budget_id>/change/", ChangeView.as_view(), name="limits-change"),
    path("limits/<uuid:budget_id>/remove/", RemoveView.as_view(), name="limits-remove"),
    path("statements/", StatementsView.as_view(), name="statements"),
    path("statements/<uuid:statement_id>/", StatementView.as_view(), name="statement"),
    path("statements/<uuid:statement_id>/statement.csv", StatementCsvView.as_view(), name="statement-csv"),
    path("statements/<uuid:statement_id>/statement.json", StatementJsonView.as_view(), name="statement-json"),
]
