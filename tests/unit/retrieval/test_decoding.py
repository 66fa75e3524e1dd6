"""Bytes to text, decided on the whole file."""

import pytest

from retrieval.parsing.decoding import decode, looks_binary

TEXTS = [
    ("cp1252", "Où est passée la clé de la façade ?"),
    ("cp1252", "El niño comió mañana en la peña, ¿qué pasó?"),
    ("cp1252", "Straße über Größe – 15,50 €"),
    ("cp1250", "Příliš žluťoučký kůň úpěl ďábelské ódy."),
    ("iso8859_2", "Żółw śpi w łóżku, a gęś je źdźbło."),
    ("cp1251", "Съешь ещё этих мягких французских булок."),
    ("koi8_r", "Съешь ещё этих мягких французских булок."),
    ("cp1253", "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία"),
    ("cp1254", "Pijamalı hasta yağız şoföre çabucak güvendi."),
    ("cp932", "三木英子は東京の山田さん"),
    ("gb18030", "这是一份合同，年度财务报告"),
    ("big5", "台北市政府的年度財務報告書已經發佈"),
    ("euc_kr", "대한민국의 수도는 서울이다."),
    ("euc_jp", "これは日本語の文章です。"),
    ("iso2022_jp", "これは日本語の文章です。"),
]


@pytest.mark.parametrize(("encoding", "text"), TEXTS)
@pytest.mark.parametrize("before", ["", "name,city\n" * 700], ids=["alone", "late"])
def test_legacy_encodings_are_told_apart(encoding: str, text: str, before: str) -> None:
    # "late": the first telling byte comes after 7 kB of ASCII.
    found = decode((before + text).encode(encoding))
    assert found.text == before + text
    assert found.guessed


@pytest.mark.parametrize(
    ("data", "text", "guessed"),
    [
        (b"plain", "plain", False),
        ("grün".encode(), "grün", False),
        ("grün".encode("utf-8-sig"), "grün", False),
        ("grün".encode("utf-16"), "grün", False),
        ("Привет, мир 2024 года".encode("utf-16-le"), "Привет, мир 2024 года", True),
        ("Hello there".encode("utf-16-be"), "Hello there", True),
    ],
)
def test_unicode_forms(data: bytes, text: str, guessed: bool) -> None:
    found = decode(data)
    assert (found.text, found.guessed) == (text, guessed)


@pytest.mark.parametrize(
    ("head", "declared"),
    [
        (b'<meta charset="iso-8859-1">', "cp1252"),
        (b"<meta http-equiv=content-type content='text/html; charset=windows-1251'>", "cp1251"),
        (b'<?xml version="1.0" encoding="koi8-r"?>', "koi8-r"),
    ],
)
def test_a_declared_encoding_is_believed(head: bytes, declared: str) -> None:
    found = decode(head + "\u00e9".encode("cp1252"), declared=True)
    assert found.text.endswith(b"\xe9".decode(declared))
    assert not found.guessed


def test_a_declaration_that_does_not_fit_is_not_believed() -> None:
    found = decode(b'<meta charset="ascii-nonsense"> caf\xe9', declared=True)
    assert found.text.endswith("café")
    assert found.guessed


@pytest.mark.parametrize(
    ("data", "binary"),
    [
        (b"text with a stray \x00 in it", False),
        ("UTF-16 text".encode("utf-16-le"), False),
        (bytes(range(32)) * 20, True),
        (b"\x89PNG\r\n\x1a\n" + bytes(200), True),
    ],
)
def test_binary_is_known_by_its_control_characters(data: bytes, binary: bool) -> None:
    assert looks_binary(data) is binary


SENTENCES = {
    "¿Dónde está la biblioteca? El niño comió una manzana en el jardín.\n": (
        "cp1252",
        "latin-1",
        "utf-32-le",
    ),
    "Die schöne Frau hat für den Kaffee bezahlt. Größe, Äpfel, Öl.\n": (
        "cp1252",
        "cp850",
        "mac_roman",
        "utf-16-be",
    ),
    "L’été dernier, nous sommes allés à la plage où il faisait très chaud.\n": ("cp1252", "mac_roman"),
    "Köszönöm szépen a segítséget, őszintén szólva árvíztűrő.\n": ("cp1250", "iso8859_2"),
    "Zażółć gęślą jaźń. Dziękuję bardzo za pomoc, proszę przyjść jutro.\n": ("cp1250", "iso8859_2"),
    "Доброго ранку! Це український текст, який містить літери їжак та євро.\n": ("cp1251", "koi8_u"),
    "Привет, мир! Это простой русский текст для проверки.\n": ("cp1251", "koi8_r", "cp866", "iso8859_5"),
    "Ąžuolas, šaltinis, žmogus, čia yra lietuviškas tekstas.\n": ("cp1257",),
    "مرحبا بالعالم! هذا نص عربي بسيط لاختبار ترميز الملف.\n": ("cp1256", "iso8859_6", "utf-16-le"),
    "这是一个简单的中文文本，用来测试文件的编码是否正确。\n": (
        "gb18030",
        "hz",
        "utf-16-le",
        "utf-16-be",
        "utf-32-le",
    ),
    "これは日本語のテキストです。東京は日本の首都です。\n": (
        "cp932",
        "euc_jp",
        "iso2022_jp",
        "utf-16-le",
        "utf-16-be",
    ),
    "이것은 파일 인코딩을 시험하기 위한 한국어 텍스트입니다.\n": ("cp949", "utf-16-be"),
}


@pytest.mark.parametrize(
    ("text", "encoding"), [(text, name) for text, names in SENTENCES.items() for name in names]
)
def test_one_sentence_is_enough(text: str, encoding: str) -> None:
    data = text.encode(encoding)
    assert decode(data).text == text
    assert not looks_binary(data)


@pytest.mark.parametrize(
    "text", ["서울특별시 강남구 테헤란로 152", "임대차 계약은 오 년간 유효하며", "고객센터 전화번호"]
)
def test_korean_is_not_taken_for_chinese(text: str) -> None:
    assert decode(text.encode("euc_kr")).text == text


@pytest.mark.parametrize(
    ("data", "text", "strays"),
    [
        ("Größe — naïve façade. ".encode() * 9 + b"\xff!", "Größe — naïve façade. " * 9 + "ÿ!", 1),
        ("Größe in UTF-8. ".encode() * 3 + "Größe".encode("cp1252"), "Größe in UTF-8. " * 3 + "Größe", 2),
        ("これは日本語の文章です。".encode() + b"\xe3\x81", "これは日本語の文章です。ã\ufffd", 2),
    ],
)
def test_a_broken_byte_does_not_make_another_encoding_of_a_file(data: bytes, text: str, strays: int) -> None:
    found = decode(data)
    assert (found.text, found.encoding, found.strays) == (text, "utf-8", strays)
    assert found.guessed


def test_a_stray_nul_makes_no_utf16_of_a_page() -> None:
    assert decode("<p>Caf\x00é au lait, s'il vous plaît </p>".encode("cp1252")).encoding == "cp1252"
