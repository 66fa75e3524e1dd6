"""From a request at one of the doors (chat, REST, `/v1`) to an `Ask`: who may ask whom, and what goes along. Reads."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from app.accounts.models import Level, Team
from app.accounts.selectors import Caller, team_get, team_levels
from app.catalog.models import IMAGES, JSON_SCHEMA, TOOLS, Deployment
from app.catalog.selectors import Target, highest_level, targets, targets_named
from app.chat.assistants import assistant_get, assistant_named
from app.chat.attaching import attachments_of
from app.chat.attachments import Attachment
from app.chat.history import NEWEST, branch_of
from app.chat.models import Assistant
from app.chat.precount import DEFAULT_OUTPUT_TOKENS
from app.chat.prompting import last_question, words_of
from app.chat.selectors import conversation_asked, passages_usual
from app.chat.types import Ask, Options
from app.common.cache import remembered
from app.common.errors import NotAllowed, PartFailed
from app.gate.embedding import choose
from app.gate.routing import Routed, Wish, choices, decide
from inference_client.types import ImagePart, Message
from retrieval import selectors as documents
from retrieval.models import Collection
from retrieval.types import Viewer

NO_OPTIONS = Options()
CHARACTERS_PER_TOKEN = 5
"""A high guess, so that routing leaves no model out whose window the count would find large enough."""

_cached_targets = remembered(1.0)(targets)
_cached_named = remembered(1.0)(targets_named)
_cached_team = remembered(1.0)(team_get)
_cached_levels = remembered(1.0)(team_levels)
_cached_space = remembered(1.0)(documents.space_active)


@dataclass(frozen=True, slots=True)
class _Frame:
    """What every door decides alike: who pays, what is searched, how private that makes it, and who may answer."""

    caller: Caller
    team: Team
    assistant: Assistant | None
    chosen: tuple[Collection, ...]
    level: str
    route: Routed

    def ask(
        self, turn_id: UUID, request_id: str, question: str, *, files: tuple[Attachment, ...] = ()
    ) -> Ask:
        """The turn as far as this goes; a door adds what is its own."""
        ids = tuple(c.id for c in self.chosen)
        return Ask(
            turn_id=turn_id,
            request_id=request_id,
            caller=self.caller,
            team_id=self.team.id,
            team_name=self.team.name,
            targets=self.route.targets,
            route=self.route,
            embedding=_embedding(self.level) if ids or files else None,
            question=question,
            instructions=self.assistant.prompt if self.assistant else "",
            attachments=files,
            collections=ids,
            retrieved_p50=passages_usual(ids) if ids else None,
            collection_names=tuple(c.name for c in self.chosen),
            level=self.level,
        )


def _framed(
    caller: Caller, team: Team, assistant: Assistant | None, collections: Sequence[UUID], wish: Wish
) -> _Frame:
    """Decide all of it. The level is at least the wish's."""
    chosen = (
        documents.collections_resolve(Viewer(caller.principals), list(collections)) if collections else []
    )
    # What a private team owns stays private for whomever it is shared with.
    owners = _cached_levels(frozenset(c.team_id for c in chosen)) if chosen else ()
    levels = [wish.level, team.level, *(c.level for c in chosen), *owners]
    if assistant is not None:
        levels += [assistant.level, assistant.team.level]
    wish = replace(wish, level=highest_level(*levels))
    return _Frame(caller, team, assistant, tuple(chosen), wish.level, _routed(caller, wish))


def ask_in_conversation(  # noqa: PLR0913 - what a door may say about a question
    *,
    caller: Caller,
    conversation_id: UUID,
    turn_id: UUID,
    request_id: str,
    text: str,
    model: str | None = None,
    collections: Sequence[UUID] | None = None,
    attachments: Sequence[UUID] = (),
    parent: UUID | str | None = NEWEST,
    max_output_tokens: int | None = None,
    draft: bool = False,
) -> Ask:
    """Gather a turn of a conversation. `attachments` go along from here on, with those that the branch has already.

    Errors: NotFound naming the item, NotAllowed, PartFailed without a model, Conflict for a file that is not read yet.
    """
    conversation = conversation_asked(caller, conversation_id)
    caller.require_spender(conversation.team_id)
    team = _cached_team(conversation.team_id)
    assistant = assistant_get(caller, conversation.assistant_id) if conversation.assistant_id else None
    if collections is None:
        collections = [UUID(c) for c in conversation.collections]
    wish = _wish(model or conversation.model, team.id, [text], max_output_tokens, level=conversation.level)
    frame = _framed(caller, team, assistant, collections, wish)
    branch = branch_of(conversation.id, parent)
    files = attachments_of(
        conversation,
        named=attachments,
        inherited=branch.attachments,
        target=frame.route.targets[0],
        draft=draft,
    )
    return replace(
        frame.ask(turn_id, request_id, text, files=files),
        history=branch.pairs,
        attachments_id=conversation.attachments_id,
        notices=branch.notices,
        max_output_tokens=max_output_tokens,
        conversation_id=conversation.id,
        parent_id=branch.parent_id,
    )


def ask_with_messages(  # noqa: PLR0913 - what a door may say about a question
    *,
    caller: Caller,
    turn_id: UUID,
    request_id: str,
    model: str,
    messages: tuple[Message, ...],
    collections: Sequence[UUID] | None = None,
    max_output_tokens: int | None = None,
    options: Options = NO_OPTIONS,
) -> Ask:
    """Gather a `/v1` call: the caller's messages, the key's team pays, retrieval only when collections are named.

    An assistant as the model brings its prompt, its level and, unless others are named, its collections.
    """
    team: Team = _cached_team(caller.default_team_id)
    caller.require_spender(team.id)
    assistant = assistant_named(caller, model)
    if assistant is not None:
        model = assistant.model
        collections = [UUID(c) for c in assistant.collections] if collections is None else collections
    wish = _wish(model, team.id, [words_of(message) for message in messages], max_output_tokens)
    wish = replace(wish, capabilities=_needed(messages, options))
    frame = _framed(caller, team, assistant, collections or (), wish)
    return replace(
        frame.ask(turn_id, request_id, last_question(messages)),
        messages=messages,
        max_output_tokens=max_output_tokens,
        options=options,
        keep=bool(frame.chosen),
    )


def ask_draft(  # noqa: PLR0913 - what a door may say about a question
    *,
    caller: Caller,
    conversation_id: UUID | None,
    team_id: UUID | None,
    turn_id: UUID,
    request_id: str,
    text: str,
    model: str | None,
    collections: Sequence[UUID] | None,
    attachments: Sequence[UUID] = (),
    parent: UUID | str | None = NEWEST,
    assistant_id: UUID | None = None,
) -> Ask:
    """What would be asked if the draft were sent now, in a conversation or as the first of a new one."""
    if conversation_id is not None:
        return ask_in_conversation(
            caller=caller,
            conversation_id=conversation_id,
            turn_id=turn_id,
            request_id=request_id,
            text=text,
            model=model,
            collections=collections,
            attachments=attachments,
            parent=parent,
            draft=True,
        )
    payer_id = team_id or caller.default_team_id
    caller.require_spender(payer_id)
    assistant = assistant_get(caller, assistant_id) if assistant_id else None
    wish = _wish(model or "", payer_id, [text], None)
    return _framed(caller, team_get(payer_id), assistant, collections or (), wish).ask(
        turn_id, request_id, text
    )


def models_for(caller: Caller) -> list[Target]:
    """One deployment for each name that this caller may use: models, the preferred first, then aliases."""
    return [
        target
        for target in choices()
        if caller.models_allowed is None or target.public_name in caller.models_allowed
    ]


def _wish(
    model: str,
    team_id: UUID,
    texts: Sequence[str],
    max_output_tokens: int | None,
    *,
    level: str = Level.PUBLIC.value,
) -> Wish:
    return Wish(
        model=model,
        level=level,
        team_id=team_id,
        input_tokens=sum(map(len, texts)) // CHARACTERS_PER_TOKEN,
        output_tokens=max_output_tokens or DEFAULT_OUTPUT_TOKENS,
    )


def _needed(messages: Sequence[Message], options: Options) -> frozenset[str]:
    """What a model must be able to do besides text."""
    pictures = any(
        isinstance(part, ImagePart)
        for message in messages
        if not isinstance(message.content, str)
        for part in message.content
    )
    schema = (options.response_format or {}).get("type") == "json_schema"
    wanted = ((TOOLS, bool(options.tools)), (IMAGES, pictures), (JSON_SCHEMA, schema))
    return frozenset(name for name, needed in wanted if needed)


def _routed(caller: Caller, wish: Wish) -> Routed:
    """Who may answer. A key's models bind the name that is asked for, whoever answers to it."""
    if not wish.model:
        usable = models_for(caller)
        if not usable:
            raise PartFailed(
                "chat server", "No model is set up yet. An administrator can connect one.", retry_after=None
            )
        wish = replace(wish, model=usable[0].public_name)
    _require_model(caller, wish.model)
    return decide(wish)


def embedding_named(caller: Caller, model: str) -> Target:
    """The deployment that embeds for a `/v1` call; the key's team pays. Errors: as of a chat call."""
    team: Team = _cached_team(caller.default_team_id)
    caller.require_spender(team.id)
    _require_model(caller, model)
    return _cleared(_cached_named(model, Deployment.Purpose.EMBEDDING.value), team.level)[0]


def _require_model(caller: Caller, model: str) -> None:
    if caller.models_allowed is not None and model not in caller.models_allowed:
        raise NotAllowed(f"This key may not use `{model}`.", detail={"models": sorted(caller.models_allowed)})


def _cleared(found: Sequence[Target], level: str) -> tuple[Target, ...]:
    cleared = tuple(t for t in found if t.cleared_for(level))
    if not cleared:
        model = found[0].public_name
        raise NotAllowed(
            f"`{model}` is not cleared for {level} content. Choose another model or leave the {level} collection out.",
            detail={"level": level, "model": model},
            code="not_cleared",
        )
    return cleared


def _embedding(level: str) -> Target:
    """Who embeds the question: a server of the very model that the documents are embedded with."""
    space = _cached_space()
    found = _cached_targets(Deployment.Purpose.EMBEDDING.value)
    return choose(found, space.model if space else None, level)
