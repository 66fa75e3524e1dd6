"""Messages, turns and sources as they were sent, shown as far as the caller may read now."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.api.authentication import caller_of
from app.api.paging import listed, whole
from app.api.serializers import MoneySerializer, body, refusals
from app.api.views.pages import PlaceOutput, place_shown
from app.chat.messages import messages_of, sources_of
from app.chat.models import TurnState
from app.chat.selectors import turn_get
from app.chat.services import turn_feedback_set
from retrieval.places import Stretch, places_of


class SourceOutput(serializers.Serializer[Any]):
    """A passage as it was sent to the model; `text`, title and place are blank where `readable` is false."""

    n = serializers.IntegerField(help_text="The number it was sent under: [n] in the answer.")
    passage_id = serializers.UUIDField()
    document_id = serializers.UUIDField()
    document_version = serializers.IntegerField()
    collection_id = serializers.UUIDField()
    title = serializers.CharField()
    page = serializers.IntegerField(allow_null=True)
    page_end = serializers.IntegerField(
        allow_null=True, help_text="Where it reaches over more than one page."
    )
    heading = serializers.CharField()
    start = serializers.IntegerField(help_text="Offset of the first character.")
    end = serializers.IntegerField()
    text = serializers.CharField()
    sha256 = serializers.CharField(help_text="Of `text` as it was sent.")
    score = serializers.FloatField()
    cited = serializers.BooleanField(help_text="Whether the answer marks it.")
    whole = serializers.BooleanField(help_text="Part of an attached file that went along whole.")
    warnings = serializers.ListField(child=serializers.CharField())
    readable = serializers.BooleanField()
    reason = serializers.CharField(allow_null=True, help_text="Why it is not readable: no_access.")

    class Meta:
        ref_name = "Source"


class PlacedOutput(SourceOutput):
    places = PlaceOutput(
        many=True,
        help_text="Pages that can be shown with the passage marked; empty for formats without pages, other versions, "
        "and what may not be read.",
    )

    class Meta:
        ref_name = "SourcePlaced"


class UsageSerializer(serializers.Serializer[Any]):
    """What the server reported, or an estimate marked as such; null is unknown."""

    input_tokens = serializers.IntegerField(allow_null=True)
    output_tokens = serializers.IntegerField(allow_null=True)
    cached_input_tokens = serializers.IntegerField(allow_null=True, required=False)
    reasoning_tokens = serializers.IntegerField(allow_null=True, required=False)
    estimated = serializers.BooleanField(allow_null=True)
    price = MoneySerializer(allow_null=True)

    class Meta:
        ref_name = "TurnUsage"


class TimingSerializer(serializers.Serializer[Any]):
    ttft_ms = serializers.FloatField(allow_null=True)
    total_ms = serializers.FloatField(allow_null=True)
    tokens_per_second = serializers.FloatField(allow_null=True)

    class Meta:
        ref_name = "TurnTiming"


@extend_schema_field(UsageSerializer(allow_null=True))
class UsageField(serializers.JSONField):
    """As the turn stored it."""


@extend_schema_field(TimingSerializer(allow_null=True))
class TimingField(serializers.JSONField):
    """Milliseconds by stage beside the three that are always there."""


class MessageOutput(serializers.Serializer[Any]):
    """A question (`user`) or its answer (`assistant`). An answer's id is the turn's: send it as `parent`."""

    id = serializers.CharField()
    turn_id = serializers.UUIDField()
    parent_id = serializers.CharField(allow_null=True)
    role = serializers.ChoiceField(choices=["user", "assistant"])
    text = serializers.CharField()
    attachments = serializers.ListField(
        child=serializers.DictField(),
        help_text="Of a question: document_id, name, way (whole, searched, picture), tokens.",
    )
    reasoning = serializers.CharField()
    state = serializers.ChoiceField(choices=TurnState.values)
    finish_reason = serializers.CharField(allow_null=True)
    model = serializers.CharField(allow_null=True)
    usage = UsageField(allow_null=True)
    price = MoneySerializer(allow_null=True)
    timing = TimingField(allow_null=True)
    sources = SourceOutput(many=True)
    quotes = serializers.ListField(child=serializers.DictField())
    matches = serializers.ListField(
        child=serializers.DictField(),
        help_text="{n, text, score} of sentences without a mark that passage n says in nearly the same words: found by "
        "Tessera, not cited by the model.",
    )
    notices = serializers.ListField(child=serializers.DictField())
    error = serializers.DictField(allow_null=True)
    feedback = serializers.DictField(allow_null=True)
    created_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Message"


class TurnOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    conversation_id = serializers.UUIDField(allow_null=True)
    parent_id = serializers.UUIDField(allow_null=True)
    state = serializers.ChoiceField(choices=TurnState.values)
    estimate = serializers.DictField(help_text="As the pre-count gave it.")
    route = serializers.DictField(
        allow_null=True, help_text="Why this deployment: the name asked for, the order, a reason for each."
    )
    question = MessageOutput()
    answer = MessageOutput()

    class Meta:
        ref_name = "Turn"


class TurnView(APIView):
    """One turn of mine: a question and what came of it."""

    @extend_schema(operation_id="turns_get", responses={200: TurnOutput, **refusals(403, 404)})
    def get(self, request: Request, turn_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        turn = turn_get(caller, turn_id)
        answer, question = messages_of(caller, [turn])
        names = ("id", "conversation_id", "parent_id", "state", "estimate", "route")
        shown = {name: getattr(turn, name) for name in names}
        return Response(TurnOutput(shown | {"question": question, "answer": answer}).data)


class SourcesView(APIView):
    """The passages that were sent in a turn, in the order of their numbers."""

    @extend_schema(
        operation_id="turns_sources",
        responses={200: listed(PlacedOutput, "SourcePlaced"), **refusals(403, 404)},
    )
    def get(self, request: Request, turn_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        turn = turn_get(caller, turn_id)
        return whole(PlacedOutput(_placed(sources_of(caller, [turn.id])[turn.id]), many=True).data)


def _placed(sources: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The sources with where each stands on the pages of its document."""
    stretches = {source["n"]: _stretch(source) for source in sources if source["readable"]}
    found = places_of(list(stretches.values()))
    shown = {n: [place_shown(place) for place in found.get(at, ())] for n, at in stretches.items()}
    return [source | {"places": shown.get(source["n"], [])} for source in sources]


def _stretch(source: Mapping[str, Any]) -> Stretch:
    # A single picture has one page without a number.
    place = (source["document_id"], source["document_version"], source["start"], source["end"])
    return Stretch(*place, page=source["page"] or 1)


class FeedbackView(APIView):
    """What the reader thought of the answer."""

    class Input(serializers.Serializer[Any]):
        rating = serializers.ChoiceField(
            choices=["good", "bad"], allow_null=True, help_text="Null takes it back."
        )
        reason = serializers.ChoiceField(
            choices=["wrong", "incomplete", "sources", "unclear", "other"],
            allow_blank=True,
            default="",
            help_text="Why, in a word that can be counted.",
        )
        comment = serializers.CharField(max_length=2000, allow_blank=True, default="")

        class Meta:
            ref_name = "Feedback"

    @extend_schema(
        operation_id="turns_feedback",
        request=Input,
        responses={200: MessageOutput, **refusals(400, 403, 404, 422)},
    )
    def put(self, request: Request, turn_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("chat")
        turn = turn_feedback_set(turn=turn_get(caller, turn_id), **body(self.Input, request))
        return Response(MessageOutput(messages_of(caller, [turn])[0]).data)
