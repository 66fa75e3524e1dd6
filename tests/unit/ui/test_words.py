"""Every word that people see is there in every language, and what is compiled is what was written."""

import gettext
import io
import json
import re

from tools import messages


def test_every_word_is_there_in_german() -> None:
    assert list(messages.problems()) == []


def test_a_word_that_is_not_marked_is_found() -> None:
    page = '<p title="Shown">Seen {{ name }}</p><code>not this</code>{% translate "nor this" %}'
    assert messages.bare_words(page) == ["Shown", "Seen"]


def test_marked_words_are_found() -> None:
    page = (
        "{% load i18n %}{% translate 'One' %}"
        "{% blocktranslate count n=n %}{{ n }} a{% plural %}{{ n }} b{% endblocktranslate %}"
    )
    assert set(messages.template_keys(page)) == {("One",), ("%(n)s a", "%(n)s b")}
    script = 't("A {b}", { b }); tn("{n} x", "{n} y", n); tx("C"); count("no")'
    assert messages.script_keys(script) == {"A {b}", "{n} x", "{n} y", "C"}


def test_a_sentence_that_a_script_keeps_to_itself_is_found() -> None:
    script = (
        't("All is well here."); h("p", { class: "muted small" }, "Nothing is here."); '
        "say(`“${name}” is no file.`)"
    )
    assert messages.bare_script_words(script) == ["Nothing is here.", "“${name}” is no file."]


def test_a_sentence_of_a_reader_without_german_is_found() -> None:
    source = (
        'raise ReadError(f"“{name}” is broken. Save it again.")\nnote = "Read by {}, in part."\n'
        '"A docstring is none."'
    )
    said = sorted(messages.sentences_said(source))
    assert said == ["Read by 7, in part.", "“7” is broken. Save it again."]
    german = ["“{name}” is broken.", "Save it again."]
    assert [messages.german_lacks(text, german) for text in said] == [True, False]


def test_the_compiled_catalogue_is_read_by_gettext() -> None:
    entries = messages.po_read()
    catalogue = gettext.GNUTranslations(io.BytesIO(messages.mo_bytes(entries)))
    assert catalogue.gettext("Sources") == "Quellen"
    plurals = [key for key in entries if len(key) == 2]
    assert plurals
    for plural in plurals:
        assert [catalogue.ngettext(*plural, n) for n in (1, 2)] == list(entries[plural])


def test_values_keep_their_places() -> None:
    pairs = {key[0]: said[0] for key, said in messages.po_read().items() if key[0]}
    pairs |= json.loads(messages.SCRIPT_WORDS.read_text(encoding="utf-8"))
    for english, german in pairs.items():
        places = re.compile(r"%\(\w+\)s|\{\w+\}")
        assert sorted(places.findall(english)) == sorted(places.findall(german)), english
    for english, german in json.loads(messages.SERVER_WORDS.read_text(encoding="utf-8")).items():
        # German says some things without a word that English needs.
        assert set(re.findall(r"\{\w+\}", german)) <= set(re.findall(r"\{\w+\}", english)), english


def test_a_sentence_that_the_server_no_longer_says_is_found() -> None:
    said = "The file \1 is too large.\0It is kept."
    asked = ["The file {name} is too large.", "It is kept.", "The file {name} is too small.", "It was kept."]
    assert list(messages.server_gone(asked, said)) == asked[2:]
