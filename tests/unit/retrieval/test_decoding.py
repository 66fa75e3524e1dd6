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
