"""Pictures: fitted to what a model takes, counted by the published rules, refused where they cannot go."""

import io
import random
from contextlib import suppress
from typing import Any

import pytest
from PIL import Image

from inference_client.adapters.kinds import KINDS, kind_of
from inference_client.counting import counted_here
from inference_client.errors import InvalidRequest, Unsupported
from inference_client.images import RULES, picture_fitted, picture_tokens, request_fitted, rule_of
from inference_client.meter import Meter
from inference_client.tokens import counter
from inference_client.types import ChatRequest, ImagePart, Message, TextPart


def picture(width: int, height: int, form: str = "PNG", *, mode: str = "RGB", **options: Any) -> ImagePart:
    out = io.BytesIO()
    Image.new(mode, (width, height)).save(out, form, **options)
    return ImagePart(out.getvalue(), f"image/{form.lower()}")


def size_of(part: ImagePart) -> tuple[int, int]:
    return Image.open(io.BytesIO(part.data)).size


TOKENS = [
    # OpenAI's own examples: 1024 × 1024 is scaled to 768 × 768, 2048 × 4096 to 768 × 1536.
    ("openai", 1024, 1024, 765),
    ("openai", 2048, 4096, 1105),
    ("openai", 100, 100, 255),
    # Anthropic's own table: tokens = width · height / 750.
    ("anthropic", 200, 200, 54),
    ("anthropic", 1000, 1000, 1334),
    ("anthropic", 1092, 1092, 1590),
    # Google's own example: 960 × 540 has a tile of 360 and so six of them.
    ("gemini", 384, 384, 258),
    ("gemini", 960, 540, 1548),
    ("gemini", 385, 100, 258 * 2),
    ("server", 300, 250, 100),
]


@pytest.mark.parametrize(("rule", "width", "height", "expected"), TOKENS)
def test_the_published_rules(rule: Any, width: int, height: int, expected: int) -> None:
    assert picture_tokens(picture(width, height), RULES[rule]) == expected


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("size", [(5000, 20), (20, 5000), (4000, 3000), (1, 1), (1568, 1568)])
def test_a_fitted_picture_costs_what_was_counted(rule: Any, size: tuple[int, int]) -> None:
    part = picture(*size)
    fitted = picture_fitted(part, RULES[rule])
    assert picture_tokens(fitted, RULES[rule]) == picture_tokens(part, RULES[rule])
    assert picture_fitted(fitted, RULES[rule]) == fitted
    assert min(size_of(fitted)) >= 1


@pytest.mark.parametrize(
    ("rule", "size", "expected"),
    [
        ("openai", (4096, 2048), (1536, 768)),
        ("anthropic", (3136, 1568), (1549, 774)),
        ("gemini", (6144, 3072), (3072, 1536)),
        ("server", (4096, 100), (2048, 50)),
        ("server", (640, 480), (640, 480)),
    ],
)
def test_large_pictures_are_scaled_down_never_up(rule: Any, size: Any, expected: Any) -> None:
    assert size_of(picture_fitted(picture(*size), RULES[rule])) == expected


def test_what_fits_is_left_alone_and_named_by_what_it_is() -> None:
    part = picture(10, 10)
    assert picture_fitted(part, RULES["openai"]) == part
    lying = ImagePart(part.data, "image/jpeg")
    assert picture_fitted(lying, RULES["openai"]).media_type == "image/png"


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (picture(9, 9, "BMP"), "image/jpeg"),
        (picture(9, 9, "TIFF", mode="CMYK"), "image/jpeg"),
        (picture(9, 9, "GIF", mode="P", transparency=0), "image/png"),
        (picture(3000, 9, mode="RGBA"), "image/png"),
        (picture(9, 9, "TIFF", mode="I;16"), "image/jpeg"),
    ],
)
def test_other_forms_become_one_that_is_taken(part: ImagePart, expected: str) -> None:
    fitted = picture_fitted(part, RULES["gemini"])
    assert fitted.media_type == expected
    assert Image.MIME[Image.open(io.BytesIO(fitted.data)).format] == expected


def test_only_the_first_frame_of_an_animation_is_sent() -> None:
    out = io.BytesIO()
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "blue")]
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:])
    fitted = picture_fitted(ImagePart(out.getvalue(), "image/gif"), RULES["openai"])
    assert getattr(Image.open(io.BytesIO(fitted.data)), "n_frames", 1) == 1


def test_photographs_are_turned_upright_and_lose_place_and_time() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x0132] = "2026:01:02 03:04:05"
    part = picture(40, 20, "JPEG", exif=exif)
    fitted = picture_fitted(part, RULES["openai"])
    assert size_of(fitted) == (20, 40)
    assert not Image.open(io.BytesIO(fitted.data)).getexif()
    assert b"2026:01:02" in part.data
    assert b"2026:01:02" not in fitted.data
    tall = picture(3000, 300, "JPEG", exif=exif)
    assert picture_tokens(tall, RULES["anthropic"]) == picture_tokens(picture(300, 3000), RULES["anthropic"])


@pytest.mark.parametrize("data", [b"", b"no picture", b"\x89PNG\r\n\x1a\n", picture(50, 50).data[:60]])
def test_what_is_no_picture_is_told(data: bytes) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read"):
        picture_fitted(ImagePart(data, "image/png"), RULES["server"])


def test_a_damaged_picture_is_told() -> None:
    whole = picture(3000, 3000, "JPEG").data
    with pytest.raises(InvalidRequest, match="cannot be read"):
        picture_fitted(ImagePart(whole[:-2000], "image/jpeg"), RULES["server"])


@pytest.mark.filterwarnings("ignore")  # notes that Pillow cannot read are warned of, not raised
def test_damaged_pictures_raise_nothing_else() -> None:
    chance = random.Random(5)
    exif = Image.Exif()
    exif[0x0112] = 6
    wholes = [picture(40, 30, form, exif=exif).data for form in ("PNG", "JPEG", "WEBP", "TIFF")] + [
        picture(40, 30, form).data for form in ("GIF", "BMP", "ICO", "PPM")
    ]
    for _ in range(1500):
        data = bytearray(chance.choice(wholes))
        for _ in range(chance.choice((1, 3, 10))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        part = ImagePart(bytes(data[: chance.choice((None, chance.randrange(len(data))))]), "image/png")
        for use in (picture_fitted, picture_tokens):
            with suppress(InvalidRequest):
                use(part, RULES["openai"])


def test_a_picture_that_unfolds_into_gigabytes_is_refused_unread() -> None:
    for side in (8_001, 10_001, 20_000):
        bomb = picture(side, 10_000, mode="1")
        with pytest.raises(InvalidRequest):
            picture_fitted(bomb, RULES["server"])


def test_a_picture_too_large_in_bytes_is_written_smaller_or_refused() -> None:
    noise = Image.effect_noise((300, 300), 100)
    out = io.BytesIO()
    noise.convert("RGBA").save(out, "PNG")
    part = ImagePart(out.getvalue(), "image/png")
    small = RULES["server"].__class__(
        media_types=frozenset({"image/png"}), fit=lambda size: size, tokens=lambda size: 1, max_bytes=80_000
    )
    assert len(part.data) > 80_000
    assert picture_fitted(part, small).media_type == "image/jpeg"
    with pytest.raises(InvalidRequest, match="bytes"):
        picture_fitted(
            part,
            RULES["server"].__class__(
                media_types=small.media_types, fit=small.fit, tokens=small.tokens, max_bytes=100
            ),
        )


def test_a_whole_request_is_fitted() -> None:
    big = picture(4000, 10)
    request = ChatRequest(
        model="m",
        messages=(Message("system", "x"), Message("user", (TextPart("?"), big))),
        max_output_tokens=1,
    )
    fitted = request_fitted(request, kind_of("openai"))
    assert fitted.messages[0] == request.messages[0]
    assert size_of(fitted.messages[1].content[1]) == (2048, 5)
    ours = counted_here(request, kind_of("openai"), Meter(counter(), "m"))
    without = counted_here(
        ChatRequest(model="m", messages=(request.messages[0], Message("user", "?")), max_output_tokens=1),
        kind_of("openai"),
        Meter(counter(), "m"),
    )
    assert ours.input_tokens - without.input_tokens == 85 + 170 * 4


def test_every_kind_has_a_rule_or_refuses() -> None:
    for kind in KINDS.values():
        if kind.images is None:
            with pytest.raises(Unsupported, match="pictures"):
                rule_of(kind)
        else:
            assert rule_of(kind) is RULES[kind.images]
