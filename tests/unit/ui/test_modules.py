"""The modules of the pages, each rule by itself, in a real browser."""

from typing import Any

import pytest
from playwright.sync_api import Page

from tests.unit.ui.conftest import Run

STREAM = (
    'id: 1\nevent: turn\ndata: {"a": 1}\n\n: still here\n\n'
    'id: 2\r\nevent: delta\r\ndata: {"text":\r\ndata: "ü€😀"}\r\n\r\ndata: x\n\n'
)
EVENTS = [
    {"event": "turn", "data": '{"a": 1}', "id": "1"},
    {"event": "delta", "data": '{"text":\n"ü€😀"}', "id": "2"},
    {"event": "message", "data": "x", "id": None},
]


def test_events_are_the_same_however_the_line_is_cut(run: Run) -> None:
    wrong = run(
        "common/js/sse",
        """(m, text, expected) => {
          const wrong = [];
          for (let i = 0; i <= text.length; i++) for (let j = i; j <= text.length; j += 3) {
            const parser = new m.EventParser();
            const found = [text.slice(0, i), text.slice(i, j), text.slice(j)].flatMap((part) => parser.push(part));
            if (JSON.stringify(found) !== JSON.stringify(expected)) wrong.push([i, j, found]);
          }
          return wrong;
        }""",
        STREAM,
        EVENTS,
    )
    assert wrong == []


def test_letters_cut_in_the_middle_of_their_bytes_arrive_whole(run: Run) -> None:
    found = run(
        "common/js/sse",
        """async (m, text) => {
          const bytes = new TextEncoder().encode(text);
          const start = (c) => { for (const b of bytes) c.enqueue(new Uint8Array([b])); c.close(); };
          const body = new ReadableStream({ start });
          const found = [];
          for await (const event of m.events(new Response(body))) found.push(event);
          return found;
        }""",
        STREAM,
    )
    assert found == EVENTS


@pytest.mark.parametrize(
    ("later", "last", "after"),
    [("2", "1", True), ("2", "2", False), ("10", "9", True), ("9", "10", False), ("1", None, True), (None, "5", True),
     ("5-1", "5-0", True), ("5-0", "5-1", False), ("6-0", "5-9", True)],
)  # fmt: skip
def test_order_of_event_ids(run: Run, later: str | None, last: str | None, after: bool) -> None:
    assert run("common/js/sse", "(m, a, b) => m.isAfter(a, b)", later, last) is after


HOSTILE = [
    "<script>window.problems.push('ran')</script>",
    "<img src=x onerror=\"window.problems.push('ran')\">",
    "![alt](https://tracker.example/p.png?secret)",
    "![alt](data:image/svg+xml;base64,PHN2Zz4=)",
    "[x](javascript:window.problems.push('ran'))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:x)",
    "[a]: javascript:alert(1)\n\n[a]",
    "<a href='javascript:alert(1)'>x</a>",
    "<style>body{display:none}</style>",
    "<svg onload=alert(1)>",
    "<form action='https://evil.example'><input name=x></form>",
    "<iframe src='https://evil.example'></iframe>",
    "`<img src=x onerror=alert(1)>`",
    "| a |\n|:-:|\n| <b onclick=alert(1)>x</b> |",
    '[x](https://ok.example "onmouseover=alert(1)")',
    "```html\n<script>alert(1)</script>\n```",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_markdown_is_harmless(run: Run, shared_page: Page, text: str) -> None:
    fetched: list[str] = []
    shared_page.on("request", lambda request: fetched.append(request.url))
    found = run(
        "common/js/markdown",
        """async (m, text) => {
          const root = document.getElementById("root");
          root.replaceChildren(m.render(text));
          await new Promise((done) => setTimeout(done, 30));
          const all = [...root.querySelectorAll("*")];
          return {
            tags: [...new Set(all.map((node) => node.tagName))],
            handlers: all.flatMap((n) => n.getAttributeNames().filter((a) => a.startsWith("on") || a === "style")),
            links: [...root.querySelectorAll("a[href]")].map((a) => [new URL(a.href).protocol, a.rel, a.target]),
            problems: window.problems,
          };
        }""",
        text,
    )
    dangerous = {"SCRIPT", "IMG", "STYLE", "FORM", "INPUT", "IFRAME", "OBJECT", "B"}
    assert not dangerous & set(found["tags"])
    assert found["handlers"] == []
    assert found["problems"] == []
    assert all(link == ["https:", "noopener noreferrer nofollow", "_blank"] for link in found["links"])
    assert [url for url in fetched if "example" in url] == []


def test_tables_are_aligned_by_class(run: Run) -> None:
    found = run(
        "common/js/markdown",
        """(m) => { const f = m.render("| a | b |\\n|:-:|--:|\\n| 1 | 2 |");
          return [...f.querySelectorAll("td")].map((cell) => cell.className); }""",
    )
    assert found == ["align-center", "align-right"]


@pytest.mark.parametrize(
    ("text", "settled"),
    [
        ("one", 0),
        ("one\n\n", 0),
        ("one\n\ntwo", 5),
        ("one\n\ntwo\n\nthree", 10),
        ("- a\n\n- b", 0),
        ("- a\n\n  more", 0),
        ("1. a\n\n2. b\n\ntext", 12),
        ("```\na\n\nb", 0),
        ("```\na\n\nb\n```\n\ntext", 14),
        ("````\n```\n\nx\n````\n\ny", 18),
        ("1. a\n\n2", 0),
        ("one\n\n*", 0),
        ("one\n\n**two**", 5),
        ("> a\n\n> b", 0),
        ("~~~\n```\n\nx", 0),
    ],
)
def test_only_closed_blocks_are_settled(run: Run, text: str, settled: int) -> None:
    assert run("common/js/markdown", "(m, text) => m.settledLength(text)", text) == settled


LONG = (
    "# Title\n\nSome **bold** text [1].\n\n- one\n- two\n\n```python\nx = 1\n\ny = 2\n```\n\n"
    "| a | b |\n|---|---|\n| 1 | 2 |\n\nThe *end*."
)


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_text_that_grew_looks_like_text_drawn_at_once(run: Run, size: int) -> None:
    found = run(
        "common/js/streaming",
        """async (m, text, size) => {
          const { render } = await import("/static/common/js/markdown.js");
          const target = document.createElement("div");
          const growing = new m.GrowingText(target, () => {});
          let first = null, kept = true;
          for (let i = 0; i < text.length; i += size) {
            growing.append(text.slice(i, i + size));
            growing.draw();
            first ??= target.querySelector("h1:not(.tail h1)");
            kept &&= !first || target.contains(first);
          }
          // While a block of code grows it has no head with its language and its button yet.
          const plain = (node) => {
            const copy = node.cloneNode(true);
            copy.querySelectorAll(".code-head").forEach((head) => head.remove());
            return copy.textContent.replace(/\\s+/g, "");
          };
          const grown = plain(target);
          growing.finish();
          const once = document.createElement("div");
          once.append(render(text));
          return { grown, plain: plain(once), finished: target.textContent, once: once.textContent,
            kept: kept && first !== null };
        }""",
        LONG,
        size,
    )
    assert found["finished"] == found["once"]
    assert found["kept"], "a settled block was drawn again"
    assert found["grown"] == found["plain"]


def test_markers_become_buttons_and_strangers_vanish(run: Run) -> None:
    found = run(
        "chat/js/citations",
        """(m) => {
          const root = document.createElement("div");
          const add = (tag, textContent) => root.append(Object.assign(document.createElement(tag), { textContent }));
          add("p", "It holds [1], see [2, 7][3]. Not [9].");
          add("code", "a[1]");
          const opened = [];
          m.decorate(root, [1, 2, 3].map((n) => ({ n, title: `T${n}`, page: n })), (n) => opened.push(n));
          root.querySelectorAll("button").forEach((button) => button.click());
          return [root.textContent, opened, root.querySelector("button").getAttribute("aria-label")];
        }""",
    )
    assert found == ["It holds1, see23. Not.a[1]", [1, 2, 3], "Source 1: T1, page 1"]


REPLAY: list[tuple[str, dict[str, Any]]] = [
    ("turn", {"turn_id": "t", "model": "m", "notices": []}),
    ("status", {"phase": "retrieving"}),
    ("sources", {"items": [{"n": 1, "title": "T"}, {"n": 2, "title": "U"}]}),
    ("delta", {"text": "Hello "}),
    ("something_new", {"x": 1}),
    ("delta", {"text": "you [2]."}),
    (
        "usage",
        {
            "input_tokens": 3,
            "output_tokens": 2,
            "estimated": False,
            "price": {"amount": "1", "currency": "EUR"},
        },
    ),
    ("done", {"finish_reason": "stop"}),
]
APPLY = """(m, events) => {
  const answer = m.newAnswer({ id: "a", model: "m", parentId: "q" });
  const ended = events.map(([name, data]) => m.apply(answer, name, data));
  return { text: answer.text, state: answer.state, ended: ended.at(-1), early: ended.slice(0, -1).some(Boolean),
    price: answer.price, split: m.splitSources(answer) };
}"""


@pytest.mark.parametrize(
    "events",
    [
        REPLAY,
        REPLAY[:5] + REPLAY,
        [*REPLAY[:4], ("delta", {"text": "Hello you [2].", "replace": True}), *REPLAY[6:]],
    ],
    ids=["once", "from the start again", "stored text instead"],
)
def test_an_answer_holds_its_text_once(run: Run, events: list[tuple[str, dict[str, Any]]]) -> None:
    found = run("chat/js/answer", APPLY, [list(event) for event in events])
    assert (found["text"], found["state"], found["ended"], found["early"]) == (
        "Hello you [2].",
        "completed",
        True,
        False,
    )
    assert [source["n"] for source in found["split"]["cited"]] == [2]
    assert [source["n"] for source in found["split"]["sent"]] == [1]


TREE = [
    {"id": "q1", "role": "user", "parent_id": None, "created_at": "1"},
    {"id": "a1", "role": "assistant", "parent_id": "q1", "created_at": "1"},
    {"id": "q2", "role": "user", "parent_id": "a1", "created_at": "2"},
    {"id": "a2", "role": "assistant", "parent_id": "q2", "created_at": "2"},
    {"id": "q3", "role": "user", "parent_id": "a1", "created_at": "3"},
    {"id": "a3", "role": "assistant", "parent_id": "q3", "created_at": "3"},
]


def test_branches(run: Run) -> None:
    found = run(
        "chat/js/tree",
        """(m, list) => {
          const messages = new Map(list.map((message) => [message.id, message]));
          const ids = (path) => path.map((message) => message.id).join(" ");
          return [m.newestLeaf(messages), m.newestLeaf(messages, "q2"), ids(m.branch(messages, "a2")),
            ids(m.versions(messages, messages.get("q2"))), ids(m.branch(messages, null))];
        }""",
        TREE,
    )
    assert found == ["a3", "a2", "q1 a1 q2 a2", "q2 q3", ""]


@pytest.mark.parametrize(
    ("state", "running"),
    [("running", True), ("done", False), ("stopped", False), ("interrupted", False), ("failed", False)],
)
def test_which_answers_are_still_written(run: Run, state: str, running: bool) -> None:
    assert run("chat/js/tree", "(m, state) => m.isRunning({ role: 'assistant', state })", state) is running


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("0.00019880", "€0.00020"),
        ("12.5", "€12.50"),
        ("0", "€0.00"),
        ("1234.5", "€1\u202f234.50"),
        ("-2", "−€2.00"),
    ],
)
def test_money(run: Run, amount: str, shown: str) -> None:
    assert run("common/js/format", "(m, amount) => m.money({ amount, currency: 'EUR' })", amount) == shown


GERMAN_AMOUNTS = """
async (m) => {
  const euros = (amount) => ({ amount, currency: "EUR" });
  const { seconds, bytes } = m;
  return [
    ...["0.0014", "-1234.5", "0.000000000001"].map((amount) => m.money(euros(amount))),
    m.money({ amount: "2", currency: "CHF" }), m.moneyExact(euros("0.00140000")),
    m.moneyRange(euros("0.0012"), euros("0.0034")), m.moneyRange(euros("2"), euros("2")),
    seconds(1234), seconds(200), bytes(1_250_000),
    ...["€1\u202f234.50", "−€2.00", "<€0.0001", "CHF 2.00"].map(m.amountTold),
    ...["1 token", "1.2 MB", "Research 2.0", "€5.pdf", "1 March, 00:00 Europe/Berlin", "2 May 2027"].map(m.amountTold),
  ];
}
"""


def test_amounts_on_german_pages(german: Run) -> None:
    assert german("common/js/format", GERMAN_AMOUNTS) == [
        "0,0014\u00a0€",
        "−1\u202f234,50\u00a0€",
        "<0,00000001\u00a0€",
        "2,00\u00a0CHF",
        "0,00140000 EUR",
        "0,0012–0,0034\u00a0€",
        "2,00\u00a0€",
        "1,2\u202fs",
        "0,2\u202fs",
        "1,3 MB",
        "1\u202f234,50\u00a0€",
        "−2,00\u00a0€",
        "<0,0001\u00a0€",
        "2,00\u00a0CHF",
        "1 Token",
        "1,2 MB",
        "Research 2.0",
        "€5.pdf",
        "1. März, 00:00 Europe/Berlin",
        "2. Mai 2027",
    ]


def test_the_names_of_limits_on_german_pages(german: Run) -> None:
    names = [
        "monthly limit of this installation",
        "monthly token limit for you in team “Law”",
        "nothing that is known",
    ]
    assert german("common/js/sentences", "(m, names) => names.map(m.phraseTold)", names) == [
        "Monatsgrenze dieser Installation",
        "Monats-Tokengrenze für Sie im Team “Law”",
        "nothing that is known",
    ]


CHIPS = """
(m, sources) => m.sourceChips(sources, () => {}).map((chip) => chip.textContent)
"""


def test_chips_of_one_file_are_told_apart(run: Run) -> None:
    lease = {"title": "Lease", "page": 5, "text": "x"}
    sources = [
        {**lease, "n": 1, "page": 3, "heading": "Rent"},
        {**lease, "n": 2, "heading": "Notice"},
        {**lease, "n": 3, "heading": "Deposit"},
        {"n": 4, "title": "notes.txt", "page": None, "heading": "", "text": "One  thing\nand  more"},
        {"n": 5, "title": "notes.txt", "page": None, "heading": "", "text": "Another"},
        {"n": 6, "title": "alone.txt", "page": None, "heading": "", "text": "Alone"},
    ]
    assert run("chat/js/citations", CHIPS, sources) == [
        "1Leasep. 3",
        "2Leasep. 5 · Notice",
        "3Leasep. 5 · Deposit",
        "4notes.txt“One thing and more…”",
        "5notes.txt“Another…”",
        "6alone.txt",
    ]


def test_what_is_unknown_is_not_zero(run: Run) -> None:
    assert run("common/js/format", "(m) => [m.money(null), m.count(null), m.seconds(null)]") == [
        "price unknown",
        "unknown",
        "unknown",
    ]


def test_the_parts_of_the_waterfall_add_up_to_the_whole(run: Run) -> None:
    timing = {
        "precount_ms": 0.2,
        "search_ms": 40,
        "embed_ms": 10,
        "prefill_ms": 300,
        "decode_ms": 600,
        "total_ms": 955.5,
    }
    parts = run("chat/js/quiet", "(m, timing) => m.stagesOf(timing)", timing)
    assert sum(ms for _, ms in parts) == pytest.approx(955.5)
    assert parts[0][0] == "Embedding the question"
    assert parts[-1] == ["Everything else", pytest.approx(5.5)]
    assert run("chat/js/quiet", "(m) => [m.stagesOf(null), m.stagesOf({ total_ms: null })]") == [[], []]


MATH = """
async (m, text) => {
  const box = document.getElementById("root") ?? document.body;
  box.replaceChildren(m.render(text));
  for (let i = 0; i < 200 && box.querySelector(".math:not(.typeset)") && !window.katex; i++)
    await new Promise((r) => setTimeout(r, 20));
  await new Promise((r) => setTimeout(r, 0));
  const many = (what) => box.querySelectorAll(what).length;
  return [many(".math") - many("a"), many(".math .katex"), box.textContent, [...window.problems]];
}
"""


@pytest.mark.parametrize(
    ("text", "formulas", "typeset"),
    [
        ("The root is $x = \\frac{-b \\pm \\sqrt{b^2-4ac}}{2a}$ here.", 1, 1),
        ("Inline \\(a^2\\) and\n\n\\[\nE = mc^2\n\\]\n\nafter", 2, 2),
        ("$$\n\\sum_{i=1}^n i\n\n= \\frac{n(n+1)}{2}\n$$", 1, 1),
        ("It costs $5 and $6, or $5-$6, or 5$ to 6$ a day.", 0, 0),
        ("`$x$` and\n\n```\n$$y$$\n```", 0, 0),
        ("Broken $\\frac{1$ stays as it is.", 1, 0),
        ("\\(\\href{javascript:alert(1)}{x}\\)", 1, 1),
        ("$\\def\\a{\\a\\a}\\a$", 1, 0),
    ],
)
def test_formulas_are_typeset_within_the_policy(run: Run, text: str, formulas: int, typeset: int) -> None:
    found, done, shown, problems = run("common/js/markdown", MATH, text)
    assert (found, done) == (formulas, typeset), shown
    assert problems == []


def test_a_formula_over_several_lines_is_never_torn_apart(run: Run) -> None:
    assert run("common/js/markdown", "(m, t) => m.settledLength(t)", "Before.\n\n$$\na\n\nb\n") == len(
        "Before.\n\n"
    )
    done = "$$\na\n\nb\n$$\n\nAfter"
    assert run("common/js/markdown", "(m, t) => m.settledLength(t)", done) == len(done) - len("After")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Your role does not allow this.", "Ihre Rolle erlaubt das nicht."),
        (
            "“a.b (1).pdf” is still being read. Your question is kept; send it again in a moment.",
            "„a.b (1).pdf“ wird noch gelesen. Ihre Frage ist erhalten; senden Sie sie gleich noch einmal.",
        ),
        (
            (
                "The monthly token limit of team “Speed limit of you” has 3 tokens left of 5 tokens. "
                "The message was not sent and nothing was charged. It does not reset by itself. "
                "An owner of the team can raise it."
            ),
            (
                "Von der Grenze (Monats-Tokengrenze des Teams “Speed limit of you”) sind noch 3 Token von 5 Token "
                "übrig. Die Nachricht wurde nicht gesendet, und nichts wurde berechnet. "
                "Sie beginnt nicht von selbst neu. Erhöhen kann sie: wer das Team besitzt (owner)."
            ),
        ),
        ("Your role does not allow this. Ask the cat.", "Your role does not allow this. Ask the cat."),
        ("", ""),
    ],
    ids=["whole", "filled in", "sentences", "half known", "nothing"],
)
def test_what_the_server_says_is_told_in_german(german: Run, said: str, told: str) -> None:
    assert german("common/js/sentences", "(m, said) => m.told(said)", said) == told
