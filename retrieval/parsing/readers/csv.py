"""Tables as text: comma, semicolon, tab or bar between the cells, whichever fits the whole file."""

import csv
import io
import itertools
from collections import Counter

from retrieval.errors import ReadError
from retrieval.parsing.blocks import PageBuilder, Reading, clean
from retrieval.parsing.clues import Format, by_text
from retrieval.parsing.decoding import decode
from retrieval.parsing.readers.text import notes
from retrieval.parsing.sheets import add_rows
from retrieval.parsing.source import Source

_DELIMITERS = ",;\t|^~"
_SAMPLE = 200
csv.field_size_limit(10_000_000)


def read_csv(source: Source) -> Reading:
    """A table as one page, every cell as it is written: leading zeros stay. Errors: ReadError when it is empty."""
    decoded = decode(source.data())
    text = clean(decoded.text)
    first, _, rest = text.partition("\n")
    # Excel's own way to name the delimiter.
    if first.lower().startswith("sep=") and len(first) == 5:
        delimiter, text = first[4], rest
    else:
        delimiter = _delimiter(text)
    try:
        # A quote that nobody closes would swallow the rest of the file: each line then stands by itself.
        pieces = [text] if text.count('"') % 2 == 0 else text.split("\n")
        rows = [row for piece in pieces for row in csv.reader(io.StringIO(piece), delimiter=delimiter)]
    except csv.Error as exc:
        raise ReadError(
            f"“{source.name}” is no well-formed table ({exc}). Save it again as CSV and upload that."
        ) from exc
    builder = PageBuilder()
    add_rows(builder, rows)
    page = builder.page()
    if not page.text:
        raise ReadError(f"“{source.name}” holds no text, only empty cells.", reason="empty")
    metadata = {"encoding": decoded.encoding, "rows": len(rows)}
    return Reading("csv", "text/csv", (page,), paged=False, metadata=metadata, warnings=notes(decoded))


def _delimiter(text: str) -> str:
    """The one that splits most rows into the same number of cells; more cells break a tie."""
    best, best_score = ",", (0.0, 0)
    for delimiter in _DELIMITERS:
        rows = csv.reader(io.StringIO(text), delimiter=delimiter)
        try:
            widths = Counter(len(row) for row in itertools.islice(rows, _SAMPLE) if row)
        except csv.Error:
            continue
        if not widths:
            continue
        width, count = widths.most_common(1)[0]
        score = (count / widths.total() if width > 1 else 0.0, width)
        if score > best_score:
            best, best_score = delimiter, score
    return best


FORMATS = (Format("csv", "text/csv", "CSV and TSV", by_text(".csv", ".tsv", ".tab"), read_csv),)
