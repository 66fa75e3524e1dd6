"""Whoever dies when: no answer is lost or doubled, and no hold stays open."""

import os
import signal
import threading
from collections.abc import Callable

import httpx
import pytest

from tests.e2e.live import Events, Live, Stream, alive, until

pytestmark = [pytest.mark.live(alone=True), pytest.mark.prove]
LONG = "Write a very long story about a lighthouse keeper and the sea, with many chapters."


def read_until(events: Events, enough: Callable[[Stream], bool]) -> Stream:
    """Read an open stream until it has shown enough."""
    seen = Stream()
    for event in events:
        seen.events.append(event)
        if enough(seen):
            break
    return seen


def joined(first: Stream, rest: Stream) -> Stream:
    """What a reader has who came back for the rest."""
    return Stream(first.events + rest.events)


def some_text(seen: Stream) -> bool:
    return len(seen.text) > 40


def test_two_processes_serve_one_conversation_and_every_reader_sees_the_text_once(live: Live) -> None:
    second = live.another_web()
    conversation = live.conversation()
    with live.ask(conversation, LONG, url=second, max_output_tokens=120) as events:
        begun = read_until(events, some_text)
    turn = begun.body("turn")["turn_id"]
    # The page was reloaded in the middle: from the start at another process, and after the last event at either.
    anew = live.read_turn(turn)
    rest_here = live.read_turn(turn, after=begun.last_id)
    rest_there = live.read_turn(turn, url=second, after=begun.last_id)
    answer = live.turn_row(turn)["answer"]
    assert anew.text == answer
    assert joined(begun, rest_here).text == joined(begun, rest_there).text == answer
    assert anew.names[-1] == "done"
    follow_up = live.ask(conversation, "Go on.", parent=turn, max_output_tokens=8)
    with follow_up as events:
        assert Stream(list(events)).names[-1] == "done"


def test_a_stop_at_another_process_ends_the_turn_and_keeps_its_text(live: Live) -> None:
    second = live.another_web()
    with live.ask(live.conversation(), LONG, url=second, max_output_tokens=900) as events:
        begun = read_until(events, some_text)
        turn = begun.body("turn")["turn_id"]
        assert live.http.post(f"/api/v1/turns/{turn}/stop/").status_code == 202
        rest = Stream(list(events))
    assert rest.body("done") == {"finish_reason": "stopped"}
    row = live.turn_row(turn)
    assert row["state"] == "stopped"
    assert joined(begun, rest).text == row["answer"]
    assert [r for r in live.held() if str(r[1]) == turn] == []


def test_many_streams_over_several_processes_are_each_complete(live: Live) -> None:
    """Field fault A21: with several workers chunks land on the wrong process and are lost."""
    # Processes that let a call wait long: fifty at once on a small machine's few slots are a queue, not a fault.
    urls = live.more_webs(4)
    done: list[tuple[str, Stream]] = []
    lock = threading.Lock()

    def one(number: int) -> None:
        with live.ask(
            live.conversation(), f"Say the number {number}.", url=urls[number % 4], max_output_tokens=12
        ) as events:
            first = read_until(events, lambda seen: "turn" in seen.names)
        turn = first.body("turn")["turn_id"]
        whole = live.read_turn(turn, url=urls[(number + 1) % 4])
        with lock:
            done.append((turn, whole))

    threads = [threading.Thread(target=one, args=(n,)) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 50
    for turn, whole in done:
        row = live.turn_row(turn)
        assert (whole.names[-1], row["state"], whole.text) == ("done", "done", row["answer"]), whole.events[
            -1
        ]
        entries = live.sql(
            "SELECT count(*) FROM billing_ledgerentry WHERE reservation_id = %s", row["reservation_id"]
        )
        assert entries == [(1,)]


def test_sigterm_lets_twenty_streams_finish_and_refuses_new_ones(live: Live) -> None:
    url = live.another_web()
    streams: list[Stream] = []
    begun = threading.Barrier(21, timeout=120)
    lock = threading.Lock()

    def one(number: int) -> None:
        with live.ask(
            live.conversation(), f"Count to {number + 10}.", url=url, max_output_tokens=24
        ) as events:
            seen = Stream()
            for event in events:
                seen.events.append(event)
                if event[1] == "turn":
                    begun.wait()
        with lock:
            streams.append(seen)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    begun.wait()
    pid = live.web_pid(url)
    os.kill(pid, signal.SIGTERM)
    until(lambda: not live.ready(url) or None, "it says that it is not ready")
    refused = httpx.post(
        f"{url}/api/v1/conversations/{live.conversation()}/turns/",
        json={"text": "late"},
        headers=live.headers,
    )
    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "restarting"
    assert refused.headers["retry-after"]
    for thread in threads:
        thread.join()
    until(lambda: not alive(pid) or None, "it ends by itself")
    assert len(streams) == 20
    for seen in streams:
        row = live.turn_row(seen.body("turn")["turn_id"])
        assert seen.body("done")["finish_reason"] in {"stop", "length"}
        assert (row["state"], row["answer"]) == ("done", seen.text)


def test_kill_minus_nine_in_mid_stream_leaves_no_hold_and_no_lost_text(live: Live) -> None:
    with live.ask(live.conversation(), LONG, max_output_tokens=900) as events:
        begun = read_until(events, some_text)
        os.kill(live.web_pid(), signal.SIGKILL)
    turn = begun.body("turn")["turn_id"]
    until(lambda: live.ready() or None, "the web process is back")
    until(lambda: live.turn_row(turn)["state"] != "running" or None, "the turn is ended")
    row = live.turn_row(turn)
    assert row["state"] == "interrupted"
    assert row["answer"].startswith(begun.text)
    assert [r for r in live.held() if str(r[1]) == turn] == []
    estimated = live.sql(
        "SELECT estimated, estimate_reason FROM billing_usageattempt WHERE reservation_id = %s",
        row["reservation_id"],
    )
    assert estimated == [(True, "sweeper")]
    # Whoever comes back to it reads the text to its end, once.
    again = live.read_turn(turn)
    assert again.text == row["answer"]
    assert again.body("done") == {"finish_reason": "interrupted"}


def test_a_web_process_starts_without_reading_the_chats(live: Live) -> None:
    """Field fault B25: a search sync at start loads every message."""
    live.sql(
        """
        INSERT INTO chat_turn (id, created_at, team_id, question, answer, reasoning, state, finish_reason, model, level,
          estimate, notices, quotes, timing, started_at, ended_at, heartbeat_at, stop_requested)
        SELECT gen_random_uuid(), now(), (SELECT id FROM accounts_team LIMIT 1), 'old question', 'old answer', '',
          'done', 'stop', 'm', 'public', '{}', '[]', '[]', '{}', now(), now(), now(), false
        FROM generate_series(1, 200000)
        """
    )
    read = (
        "SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) "
        "FROM pg_stat_user_tables WHERE relname = 'chat_turn'"
    )
    before = live.sql(read)[0][0]
    live.another_web()
    # Beat's sweep looks at running turns by their own index meanwhile: a handful of rows, never the table.
    assert live.sql(read)[0][0] - before < 1000
    live.sql("DELETE FROM chat_turn WHERE question = 'old question'")
