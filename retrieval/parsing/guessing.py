"""Which legacy encoding bytes are in, by how likely the decoded text is.

General detectors are unsure on short texts; here each candidate decodes the telling lines of the whole
file and is scored by letter frequencies of its languages. Candidates stand in the order of how common they are.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

_HAN_SIMPLIFIED = (
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去"
    "法学如都同现当没动面起看定天分还进好小部其些主样理心本前开但因只从想实日者意无力它与长把机十民第公此已工使情明性知全三又关点正业"
    "外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西月话合回特代内信表化老给世位次度门任常先海通教原东提立"
    "及比员解水名真论处走义各入几口认条平系气题活更别打女变四总何电数安少报才结反受目太量再建务做接必场件计管期市直资命金指统区保至社"
)
_HAN_TRADITIONAL = (
    "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡用道行所然家種事成方多經麼去"
    "法學如都同現當沒動面起看定天分還進好小部其些主樣理心本前開但因只從想實日者意無力它與長把機十民第公此已工使情明性知全三又關點正業"
    "外將兩高間由問很最重並物手應戰向頭文體政美相見被利什二等產或新己制身果加西月話合回特代內信表化老給世位次度門任常先海通教原東提立"
    "及比員解水名真論處走義各入幾口認條平系氣題活更別打女變四總何電數安少報才結反受目太量再建務做接必場件計管期市直資命金指統區保至社"
)
_HANGUL = (
    "이다의는을에가고하를한로은지도으사아서자기시리나그어인대해수라정스보일전있과부여것제만장구들조원우"
    "주상성오동비면습니었게문국공생학관년적교연모까유선안거무신계용경오내세간회치진미소화방실발업행중영된됩위음"
    "마때민분산등력물건체임약였며입결권금개현단남북재당호설강반본양말불법트드터르더"
)
_PUNCTUATION = "–—‘’“”„…«»€°§·•、。，「」（）？！：；《》"


@dataclass(frozen=True, slots=True)
class _Candidate:
    encoding: str
    common: str
    """Non-ASCII characters that its languages use often."""


_RUSSIAN = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё"
_UKRAINIAN = "оаниівтеркслдупямзьбгйчхцїєжшющґф"
_ARABIC = "اليمنوتردبعفهسقحكشجطصخةىضزئءثذغظؤأإآ،؟"
# One candidate for each group of languages that share a page: in a mixed list no letter would tell much.
_WESTERN = ("éèàêçâîôùûëïœÉÀÇ", "üäößÄÖÜ", "áéíóúñ¿¡üÁÉÍÓÚÑ", "ãçáõéíóúâêôà", "åäöøæéÅÄÖØÆ", "èàéìòù")
_CENTRAL = ("áíéěšřčžýůúťďňóŠČŘŽ", "ąęłóśżźćńŁŚŻ", "éáőöóüűíúÉÁŐ", "ăâîşţ", "čšžćđŠČŽ")
_CANDIDATES = (
    *(_Candidate("cp1252", letters) for letters in _WESTERN),
    *(_Candidate("iso8859_15", letters) for letters in _WESTERN),
    _Candidate("cp932", ""),
    _Candidate("gb18030", _HAN_SIMPLIFIED),
    _Candidate("big5", _HAN_TRADITIONAL),
    _Candidate("cp949", _HANGUL),
    _Candidate("euc_jp", ""),
    _Candidate("cp1251", _RUSSIAN),
    _Candidate("cp1251", _UKRAINIAN),
    _Candidate("koi8_u", _RUSSIAN),
    _Candidate("koi8_u", _UKRAINIAN),
    *(_Candidate(page, letters) for page in ("cp1250", "iso8859_2") for letters in _CENTRAL),
    _Candidate("cp1253", "αοιετσνηυρπκμλςωδγθχφβξζψάέήίόύώ"),
    _Candidate("cp1254", "ışğçöüİŞĞÇÖÜâî"),
    _Candidate("cp1255", "יוהלאמרתבשנעםדקחפטגצכןסזךףץ"),
    _Candidate("cp1256", _ARABIC),
    _Candidate("cp1257", "ėšąžįųčęūŠŽČ"),
    _Candidate("cp1257", "āīšēņļģķčūžŠŽ"),
    _Candidate("cp874", "านรอกเงมยลวดทสตะปบคหแจพชขใไโ่้ิีุู็์ัา"),
    _Candidate("cp866", _RUSSIAN),
    _Candidate("iso8859_5", _RUSSIAN),
    _Candidate("iso8859_6", _ARABIC),
    _Candidate("mac_cyrillic", _RUSSIAN),
    *(_Candidate(page, letters) for page in ("mac_roman", "cp850") for letters in _WESTERN),
)


_COMMONEST = 0.06
"""What most files of one byte a letter are in wins where little speaks for another."""


def likeliest(data: bytes) -> str | None:
    """Name of the encoding whose text is most plausible; None when none decodes the bytes."""
    best, best_score = None, -10.0
    for candidate in _CANDIDATES:
        try:
            text = data.decode(candidate.encoding)
        except UnicodeDecodeError:
            continue
        score = _plausibility(text, candidate) + (_COMMONEST if candidate.encoding == "cp1252" else 0.0)
        # A tie goes to the commoner encoding, which stands earlier.
        if score > best_score + 1e-9:
            best, best_score = candidate.encoding, score
    return best


def _plausibility(text: str, candidate: _Candidate) -> float:
    """Mean score of the non-ASCII characters, from about -1 (noise) to 1 (a language)."""
    # The lists stand in the order of frequency: scripts that share all their bytes differ only in this.
    common = {char: 1.0 - 0.5 * i / len(candidate.common) for i, char in enumerate(candidate.common)}
    total, seen, before = 0.0, 0, " "
    for char in text:
        if char > "\x7f":
            total += _worth(char, before, common)
            seen += 1
        before = char
    return total / seen if seen else 0.0


def _worth(char: str, before: str, common: Mapping[str, float]) -> float:
    kind = _kind(char)
    if kind in {"hiragana", "katakana"}:
        # Half-width katakana is what Western bytes turn into under Shift-JIS; the Chinese and Korean sets hold kana at
        # the very places where EUC-JP has them, but no text in those languages uses them.
        return 1.0 if char < "\uff00" and not common else -0.5
    if kind == "other":
        return 0.6 if char in _PUNCTUATION or char in common else -1.0
    rare = 0.6 if kind == "han" else 0.5 if kind == "hangul" else 0.2
    worth = common.get(char, 0.6 * common.get(char.lower(), rare))
    return worth - (_clash(kind, char, before) if before.isalpha() and kind != "han" else 0.0)


def _clash(kind: str, char: str, before: str) -> float:
    """How badly a letter fits the one before it."""
    before_kind = _kind(before)
    if before_kind != kind:
        return 0.0 if before_kind in {"hiragana", "katakana", "han"} else 1.0
    if char.isupper() and before.islower():
        return 1.5
    # Two accented letters side by side are rare in every Latin script.
    return 0.6 if kind == "latin" and before > "\x7f" else 0.0


@cache
def _kind(char: str) -> str:
    """Rough script of a character, "other" for what is no letter."""
    if not char.isalpha() and unicodedata.category(char) not in {"Mn", "Mc"}:
        return "other"
    name = unicodedata.name(char, "")
    first = name.split(" ", 1)[0].lower()
    if first == "cjk":
        return "han"
    if name.startswith(("HALFWIDTH KATAKANA", "KATAKANA")):
        return "katakana"
    return (
        first
        if first in {"hiragana", "hangul", "latin", "cyrillic", "greek", "hebrew", "arabic", "thai"}
        else "latin"
    )
