"""What calls teach of a model's tokenizer: weights that fit, a band that holds, and nothing where nothing is known."""

import json
import random

import pytest

from inference_client.learned import (
    LEAST,
    OTHER_PCT,
    UNLEARNED,
    Facts,
    facts_of,
    learned_from,
    learned_read,
)
from inference_client.tokens import counter


def prompts(seed: int, n: int, script: str = "abc") -> list[Facts]:
    """Prompts of some length, with more or fewer digits, marks and messages."""
    chance = random.Random(seed)
    found = []
    for _ in range(n):
        messages = chance.randint(1, 6)
        tokens, chars = chance.randint(50, 3000), {"abc": 0, "яжш": 2}[script]
        found.append(
            Facts(
                tokens, messages, 1, chance.randint(0, tokens // 5), chance.randint(0, tokens // 10),
                chance.randint(0, tokens // 6), tokens * chance.randint(60, 90) // 100, 0, chars * tokens,
            )
        )  # fmt: skip
    return found


TRUE = (0.95, 5.0, 9.0, 0.7, 0.1, 0.3, 0.05, 0.0, 0.4, *(0.0,) * 6)


def told(of: Facts, weights: tuple[float, ...] = TRUE) -> int:
    return round(sum(weight * value for weight, value in zip(weights, of, strict=True)))


@pytest.mark.parametrize("seed", range(3))
def test_what_a_tokenizer_does_is_learned_from_a_hundred_calls(seed: int) -> None:
    learned = learned_from([(of, told(of)) for of in prompts(seed, 100)])
    fresh = prompts(seed + 100, 50)
    assert learned.n == 100
    assert max(abs(learned.expected(of) / told(of) - 1) for of in fresh) < 0.02
    assert 0 < learned.plain_pct < 1.5


def test_some_wild_figures_do_not_bend_it() -> None:
    pairs = [(of, told(of)) for of in prompts(1, 200)]
    wild = [(of, number // 5 if at % 25 == 0 else number) for at, (of, number) in enumerate(pairs)]
    learned = learned_from(wild)
    assert max(abs(learned.expected(of) / told(of) - 1) for of in prompts(9, 50)) < 0.03


def test_the_band_is_the_spread_that_stays() -> None:
    chance = random.Random(4)
    noisy = [(of, round(told(of) * chance.lognormvariate(0, 0.05))) for of in prompts(4, 400)]
    learned = learned_from(noisy)
    assert 8 < learned.plain_pct < 13
    assert learned.other_pct == OTHER_PCT


def test_other_scripts_have_a_band_of_their_own() -> None:
    pairs = [(of, told(of)) for of in (*prompts(1, 60), *prompts(2, 60, "яжш"))]
    random.Random(0).shuffle(pairs)
    learned = learned_from(pairs)
    assert learned.plain_pct < 2
    assert learned.other_pct < 2


@pytest.mark.parametrize(
    "pairs",
    [
        [],
        [(of, told(of)) for of in prompts(1, LEAST - 1)],
        [(Facts(), 5)] * 50,
        [(of, 0) for of in prompts(1, 50)],
    ],
    ids=["none", "too few", "no tokens", "no figures"],
)
def test_nothing_is_learned_from_nothing(pairs: list[tuple[Facts, int]]) -> None:
    assert learned_from(pairs) == UNLEARNED


def test_few_calls_of_one_size_stay_near_what_is_usual() -> None:
    """Equal prompts say nothing of digits or messages, so nothing of them is made up."""
    one = Facts(1000, 2, 1, 10, 20, 30, 800, 0, 0)
    learned = learned_from([(one, 1100)] * LEAST)
    assert learned.expected(one) == pytest.approx(1100, rel=0.02)
    assert learned.expected(Facts(1000, 2, 1, 300, 20, 30, 800, 0, 0)) < 1400


def test_a_row_holds_all_of_it_and_an_older_one_is_forgotten() -> None:
    learned = learned_from([(of, told(of)) for of in prompts(1, 40)])
    assert learned_read(json.loads(json.dumps(learned.as_json()))) == learned
    assert learned_read({}) == learned_read(learned.as_json() | {"weights": [1.0]}) == UNLEARNED


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("", Facts()),
        ("Año 2024: “Ja”", Facts(7, 0, 0, 4, 2, 1, 2, latin=1, symbols=2)),
        ("東京🚀", Facts(7, cjk=2, other=1)),
        ("Дом ארץ مدينة ไทย हिंदी 한국", Facts(7, spaces=5, cyrillic=3, arabic=8, indic=8, hangul=2)),
        ("\ud800", Facts(7, 0, 0, 0, 0, 1)),
    ],
)
def test_the_facts_of_a_text(text: str, seen: Facts) -> None:
    assert facts_of(text, seen.tokens) == seen


def test_a_book_is_looked_at_in_slices() -> None:
    one = facts_of("Año 2024: “Ja” ", 7)
    assert facts_of("Año 2024: “Ja” " * 120_000, 7) == Facts(7, 0, 0, *(120_000 * count for count in one[3:]))


SENTENCES = (
    "The library opens at nine and closes late in the evening, except on public holidays.",
    "Die Bücherei öffnet um neun Uhr und schließt spät am Abend, außer an Feiertagen.",
    "Библиотека открывается в девять часов и закрывается поздно вечером, кроме праздников.",
    "تفتح المكتبة في الساعة التاسعة وتغلق في وقت متأخر من المساء ما عدا أيام العطل.",
    "पुस्तकालय नौ बजे खुलता है और छुट्टियों को छोड़कर देर शाम बंद होता है।",
    "图书馆九点开门，晚上很晚才关门，公共假日除外。",
    "도서관은 아홉 시에 열고 공휴일을 제외하고는 저녁 늦게 닫습니다.",
)


def test_a_prompt_in_many_scripts_is_learned_script_by_script() -> None:
    """Another tokenizer stands for the server's: it differs from ours by a factor for each script."""
    ours, theirs = counter("o200k_base").count, counter("cl100k_base").count
    chance = random.Random(5)
    pairs = []
    for _ in range(150):
        text = " ".join(chance.choices(SENTENCES, k=chance.randint(1, 12)))
        pairs.append((facts_of(text, ours(text))._replace(messages=1, prompts=1), theirs(text) + 9))
    learned = learned_from(pairs[:100])
    missed = [abs(learned.expected(of) / figure - 1) for of, figure in pairs[100:]]
    assert sum(missed) / len(missed) < 0.02
    assert learned.other_pct < 5
