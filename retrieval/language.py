"""Which language a text is in, by its script and its function words. Pure.

Good enough to choose how words are reduced to their stems; a text it cannot tell is left unstemmed.
"""

import re
from collections import Counter

SAMPLE = 20_000
"""Characters looked at: more change no vote."""
_LEAST_SHARE = 0.04
"""Share of all words that must be the winner's function words, else the language is unknown."""
_LEAST_LEAD = 1.15

CONFIGURATIONS = {
    "ar": "arabic",
    "ca": "catalan",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "ne": "nepali",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}
"""PostgreSQL's text search configuration by language; every other language is searched unstemmed."""

# A first look at the letters; the lists below decide where several languages share a script.
_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af\u1100-\u11ff]")),
    ("zh", re.compile(r"[\u3400-\u9fff\U00020000-\U0003ffff]")),
    ("th", re.compile(r"[\u0e01-\u0e7f]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("hy", re.compile(r"[\u0531-\u058f]")),
    ("he", re.compile(r"[\u05d0-\u05ea]")),
    ("ta", re.compile(r"[\u0b80-\u0bff]")),
    ("deva", re.compile(r"[\u0900-\u097f]")),
    ("arab", re.compile(r"[\u0620-\u06ff]")),
    ("cyrl", re.compile(r"[\u0400-\u04ff]")),
    ("latn", re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")),
)
_WEIGHT = {"zh": 3.0, "ja": 3.0, "ko": 2.0}
"""A character says more there than a letter does."""

_FUNCTION_WORDS = {
    "latn": {
        "ca": "amb per els les del una que dels més als aquest aquesta és són també com però entre seva seu van",
        "cs": "že se na je jako které který pro jsou byl bylo nebo jeho také podle ale jen při mezi však ve ze",
        "da": "og er det at af til en den for ikke på med som har han de blev efter eller også hvor mellem der jeg",
        "de": "der die und den von das mit ist des für dem sich nicht ein eine auf auch als wird nach bei sind was wie",
        "en": "the of and to in is that was for with are this from which have were been their not what who how did",
        "es": "de la que el en los del las por con una para es se su al como más fue entre sus pero qué este también",
        "et": "ja on ei see et mis oli kui ka selle aga või oma tema nende nagu kes siis välja pärast",
        "eu": "eta da ez du bat izan zen dira ere hau baina dute egin zuen bere dituzte batean beste",
        "fi": "ja on ei että se oli joka hän ovat myös mutta kun tai sen niin kuin jotka ole hänen mukaan",
        "fr": "de la le les et des en du une est pour que dans par qui au sur plus pas avec il sont ce aux cette",
        "ga": "agus an na ar is le do go sé bhí ag as tá ina sin mar den don raibh",
        "hu": "a az és hogy nem is egy volt meg csak azt ez mint vagy de már még ezt azonban után között",
        "id": "yang dan di dengan untuk dari pada dalam adalah ini itu ke tidak oleh sebagai juga akan atau karena",
        "it": "di che la il e un per in è del della una con non le si dei nel sono anche alla gli come ha delle da",
        "lt": "ir yra kad su buvo iš kaip tai bet apie jo už nuo jų arba taip pat buvo tik",
        "nl": "de het een van en in is dat op te met voor zijn niet die aan er ook werd door bij wordt naar om",
        "no": "og er det på til av en som for ikke med har at de ble etter eller også fra mellom være jeg hvor kan",
        "pl": "i w na z się nie do że jest to jak przez od po ale są dla oraz był które który jego także",
        "pt": "de a que o e do da em um para com não uma os no se na por mais as dos como mas foi ao das são também",
        "ro": "și în de la cu pe este care din nu pentru că mai au fost ca un prin sau dintre această sunt",
        "sv": "och i att det som en på är av för med den till inte om ett har de var vid eller från också hur",
        "tr": "ve bir bu için ile olarak da de en olan daha çok gibi sonra kadar ise ancak olduğu değil ne",
        "vi": "của và là có được trong cho một các không với những này người khi đã đến từ như",
    },
    "cyrl": {
        "bg": "на се от за да че по като са при или който които беше след този между",
        "ru": "и в не на что с как по из за от был его это для или также была были при но она они до",
        "sr": "је у се на да од са за који као су или али бити након које између би",
        "uk": "і в не на що з та як до у за від був його це для або також було при але вони після",
    },
    "arab": {
        "ar": "في من على أن إلى التي عن مع هذا كان هذه الذي ما لا بين أو كانت كما بعد",
        "fa": "در به از که این را با است برای آن یک خود بود شد تا بر های می",
        "ur": "کے میں کی ہے اور سے کا کو اس نے پر ہیں کہ ایک یہ بھی تھا جو",
    },
    "deva": {
        "hi": "के में की है और से का को हैं पर इस एक यह ने भी था कि जो किया लिए",
        "mr": "आहे आणि या च्या होते की तो हा ही आहेत व होता त्या एक येथे मध्ये",
        "ne": "छ र को मा का लाई पनि गर्न भएको छन् यो हो गरेको तथा एक",
    },
}


def _votes(languages: dict[str, str]) -> dict[str, tuple[tuple[str, float], ...]]:
    """Language and weight by word: a word that several languages share says less."""
    owners: dict[str, list[str]] = {}
    for language, words in languages.items():
        for word in set(words.split()):
            owners.setdefault(word, []).append(language)
    return {word: tuple((language, 1 / len(those)) for language in those) for word, those in owners.items()}


_VOTES = {script: _votes(languages) for script, languages in _FUNCTION_WORDS.items()}
_WORD = re.compile(r"[^\s\d.,;:!?()\[\]{}\"'“”„«»।،؟/\\|<>=+*#@_–—-]+")


def language_of(text: str) -> str:
    """ISO 639-1 code of the text's main language, or an empty string when it cannot be told."""
    sample = text[:SAMPLE]
    letters = {name: len(found.findall(sample)) * _WEIGHT.get(name, 1.0) for name, found in _SCRIPTS}
    # Japanese is written with Chinese characters too, but Chinese never with kana.
    if letters["ja"] > 0.05 * letters["zh"]:
        letters["ja"] += letters.pop("zh")
    script, most = max(letters.items(), key=lambda item: item[1])
    if most == 0:
        return ""
    return _elected(script, sample) if script in _VOTES else script


def _elected(script: str, sample: str) -> str:
    words = _WORD.findall(sample.lower())
    votes: Counter[str] = Counter()
    for word in words:
        for language, weight in _VOTES[script].get(word, ()):
            votes[language] += weight  # type: ignore[assignment]  # Counter adds any number
    ranked = [*votes.most_common(2), ("", 0), ("", 0)][:2]
    (first, best), (_, second) = ranked
    if best < max(0.5, _LEAST_SHARE * len(words)) or best < _LEAST_LEAD * second:
        return ""
    return first
