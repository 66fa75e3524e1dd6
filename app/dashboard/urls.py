from django.urls import path

from app.dashboard.choice_page import ChoiceView
from app.dashboard.cost_pages import AccuracyView, OwnServersView
from app.dashboard.cost_pages import BudgetsView as BurningView
from app.dashboard.dearest_page import DearestView
from app.dashboard.entry_page import EntriesView
from app.dashboard.knowledge_page import KnowledgeView
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
from app.dashboard.setup_pages import ConnectView, LookView, PriceView, SetupView
from app.dashboard.speed_pages import FindView, SpeedView, TurnView
from app.dashboard.statement_pages import StatementCsvView, StatementJsonView, StatementsView, StatementView
from app.dashboard.views import SpendView

app_name = "dashboard"
urlpatterns = [
    path("", SpendView.as_view(), name="spend"),
    path("setup/", SetupView.as_view(), name="setup"),
    path("setup/look/", LookView.as_view(), name="setup-look"),
    path("setup/connect/", ConnectView.as_view(), name="setup-connect"),
    path("setup/<uuid:deployment_id>/price/", PriceView.as_view(), name="setup-price"),
    path("speed/", SpeedView.as_view(), name="speed"),
    path("speed/find/", FindView.as_view(), name="speed-find"),
    path("speed/turns/<uuid:turn_id>/", TurnView.as_view(), name="speed-turn"),
    path("servers/", ServersView.as_view(), name="servers"),
    path("servers/<uuid:deployment_id>/try/", TryView.as_view(), name="servers-try"),
    path("servers/<uuid:deployment_id>/switch/", SwitchView.as_view(), name="servers-switch"),
    path("knowledge/", KnowledgeView.as_view(), name="knowledge"),
    path("choice/", ChoiceView.as_view(), name="choice"),
    path("entries/", EntriesView.as_view(), name="entries"),
    path("dearest/", DearestView.as_view(), name="dearest"),
    path("own-servers/", OwnServersView.as_view(), name="own-servers"),
    path("accuracy/", AccuracyView.as_view(), name="accuracy"),
    path("budgets/", BurningView.as_view(), name="budgets"),
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
