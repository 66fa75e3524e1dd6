"""me/teams/: a team that I am in, what leaving it would mean, and leaving it."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.accounts.members import member_leave
from app.accounts.models import Role
from app.api.authentication import caller_of
from app.api.serializers import TeamRefSerializer, refusals
from app.chat.leaving import leaving_of


class MyTeamView(APIView):
    """One team that I am in."""

    class Output(serializers.Serializer[Any]):
        team = TeamRefSerializer()
        role = serializers.ChoiceField(choices=Role.values)
        possible = serializers.BooleanField(help_text="Whether I may leave it.")
        last_owner = serializers.BooleanField(help_text="A team keeps an owner.")
        keys = serializers.IntegerField(help_text="My keys that it pays for: they end when I leave.")
        team_keys = serializers.IntegerField(help_text="Keys of the team itself: they go on.")
        conversations = serializers.IntegerField(
            help_text="My conversations that it pays for: kept, in my export, but closed to me when I leave."
        )

        class Meta:
            ref_name = "Leaving"

    @extend_schema(operation_id="my_team_get", responses={200: Output, **refusals(403, 404)})
    def get(self, request: Request, team_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        return Response(self.Output(leaving_of(caller, team_id)).data)

    @extend_schema(operation_id="my_team_leave", responses={204: None, **refusals(403, 404, 409)})
    def delete(self, request: Request, team_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("write")
        member_leave(caller=caller, team=leaving_of(caller, team_id).team)
        return Response(status=204)
