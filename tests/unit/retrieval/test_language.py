"""Languages by script and function words; words as the keyword leg sees them; one order of two legs."""

import pytest

from retrieval.fusion import fused, leading, trust
from retrieval.language import language_of
from retrieval.words import words_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The annual leave of every employee is thirty days.", "en"),
        ("Der Drucker im zweiten Stock druckt nur auf Papier, das nicht glänzt.", "de"),
        ("La durée des congés est de trente jours pour tous les employés.", "fr"),
        ("Las vacaciones de los empleados son de treinta días al año.", "es"),
        ("As férias dos funcionários são de trinta dias e não mais.", "pt"),
        ("Отпуск для всех сотрудников длится тридцать дней, и это не обсуждается.", "ru"),
        ("年假为每年三十天。", "zh"),
        ("年次有給休暇は年間三十日です。", "ja"),
        ("연차 휴가는 일 년에 삼십 일입니다.", "ko"),
        ("วันลาพักร้อนประจำปีมีสามสิบวัน", "th"),
        ("الإجازة السنوية في الشركة هي ثلاثون يوما من العمل", "ar"),
        ("कर्मचारियों की वार्षिक छुट्टी तीस दिन की है।", "hi"),
        ("How many sacks did he have?", "en"),
        ("BiP is a general endoplasmic reticulum stress marker.", ""),
        ("Wo wurde Luther geboren?", "de"),
        ("¿Cuál es la capital?", "es"),
        ("Quem escreveu a carta?", "pt"),
        ("Qui a écrit cette lettre ?", "fr"),
        ("Chi ha scritto la lettera?", "it"),
        ("Wie heeft de brief geschreven?", "nl"),
        ("Kto napisał ten list?", "pl"),
        ("Mektubu kim yazdı ve neden?", "tr"),
        ("Ai đã viết bức thư này?", "vi"),
        ("Când a fost scrisă scrisoarea?", "ro"),
        ("Ποιος έγραψε το γράμμα;", "el"),
        ("Кто написал письмо?", "ru"),
        ("Хто написав цього листа?", "uk"),
        ("من كتب هذه الرسالة؟", "ar"),
        ("ﻣﻦ ﻛﺘﺐ ﻫﺬﻩ ﺍﻟﺮﺳﺎﻟﺔ ﻓﻲ ﺍﻟﻌﺎﻡ", "ar"),
        ("מי כתב את המכתב?", "he"),
        ("Ｗｈａｔ ｉｓ ｔｈｅ ａｎｓｗｅｒ？", "en"),
        ("Hvem skrev brevet, og hvad er der i det?", "da"),
        ("Tko je napisao ovo pismo?", "hr"),
        ("চিঠিটি কে লিখেছেন?", "bn"),
        ("INV-2024-0017", ""),
        ("12 345", ""),
        ("", ""),
    ],
)
def test_language(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("text", "spaced", "pairs"),
    [
        ("and/or x.y.z COVID-19", "and or x y z COVID 19", ""),
        ("ﬁle １２", "file 12", ""),
        ("年假为 30 天", "30", "年假 假为 天"),
        ("使用Python语言", "Python", "使用 语言"),
        ("कर्मचारी की", "कर्मचारी की", ""),
        ("วันลา", "", "วั ัน นล ลา"),
        ("…", "", ""),
        ("soft\u00adhyphen, می\u200cشود, zero\u200bwidth", "softhyphen میشود zerowidth", ""),
        ("كِتَابٌ كـــتاب ﻛﺘﺎﺏ שָׁלוֹם", "كتاب كتاب كتاب שלום", ""),
        ("C++ and C#, .NET; F#m, 5# a+b", "C Cplusplus and C Csharp NET F m 5 a b", ""),
        ("x@y.org §5(2) C:\\Temp\\a_b.txt v1.2.3", "x y org 5 2 C Temp a b txt v1 2 3", ""),
        ("\x00\ud800😀", "", ""),
    ],
)
def test_words(text: str, spaced: str, pairs: str) -> None:
    words = words_of(text)
    assert (words.spaced, words.pairs) == (spaced, pairs)


def test_both_legs_count_and_ties_are_settled_by_key() -> None:
    order = fused({"a": 0.9, "b": 0.9, "c": 0.7, "d": 0.1}, {"b": 9.0, "c": 9.0})
    assert [key for key, _ in order] == ["b", "c", "a", "d"]
    assert [key for key, _ in fused({"y": 0.5, "x": 0.5}, {})] == ["x", "y"]
    assert fused({}, {}) == []
    # A leg that tells nothing changes no order.
    assert [key for key, _ in fused({"a": 0.2, "b": 0.3}, {"a": 1.0, "b": 1.0})] == ["b", "a"]


def test_words_count_as_far_as_they_say_what_was_asked() -> None:
    assert trust({"a": 2.0, "b": 8.0}, 10.0) == 1.0
    assert trust({"a": 2.0, "b": 1.0}, 10.0) == pytest.approx(0.5)
    assert trust({}, 10.0) == trust({"a": 1.0}, 0.0) == 0.0
    near, said = {"a": 0.9, "b": 0.6, "c": 0.4}, {"c": 9.0}
    assert [key for key, _ in fused(near, said)] == ["a", "c", "b"]
    assert [key for key, _ in fused(near, said, trusted=0.2)] == ["a", "b", "c"]


def test_the_first_hits_lead_as_far_as_they_are_sure() -> None:
    even = leading([(key, 1.0) for key in "abcdef"])
    assert even == pytest.approx(dict.fromkeys("abcde", 0.2))
    steep = leading([("a", 4.0), ("b", 3.75), ("c", 0.0)])
    assert sum(steep.values()) == pytest.approx(1)
    assert steep["a"] / steep["b"] == pytest.approx(2.718, rel=1e-3)
    assert steep["c"] < 1e-6
