"""Images and files as far as a provider takes them, and what replaces the others."""

import struct
from typing import Any

import pytest

from support.provider_messages import PNG, asking, assistant, call, image, png, result, user
from turnlog.model import FilePart, Message, TextPart, ToolCallPart
from turnlog.model.base import BlobRef
from turnlog.providers import provider, provider_names
from turnlog.providers.base import Report
from turnlog.providers.files import FileLimits, fit_files, image_size, image_type, is_cut

LIMITS = FileLimits(files=frozenset({"application/pdf", "audio/*"}), image_pixels=8000, many_images=2, many_pixels=2000)


def fit(*messages: Message, limits: FileLimits = LIMITS, **options: Any) -> tuple[list[Message], list[str]]:
    report = Report()
    fitted = fit_files(messages, limits, asking(**options), report)
    assert report.repairs == []
    return fitted, [loss.kind for loss in report.losses]


def text_in_place(part: FilePart, **options: Any) -> tuple[str, list[str]]:
    fitted, losses = fit(user("q", part), **options)
    (placed,) = fitted[0].parts[1:]
    assert isinstance(placed, TextPart)
    return placed.text, losses


@pytest.mark.parametrize(
    ("part", "loss", "notice"),
    [
        (image(png(9000, 10), filename="big.png"), "image-omitted", "[image omitted from request: 9000 x 10 pixels"),
        (image(png(10, 10, 16 * 2**20)), "image-omitted", "[image omitted from request: larger than 20480 KB"),
        (image(b"no image"), "image-unavailable", "[image unavailable: its bytes are no image"),
        (
            FilePart(media_type="image/png", blob=BlobRef(sha256="0", size=5000)),
            "image-unavailable",
            "[image unavailable: its bytes are not there; source=image/png size=4KB]",
        ),
        (FilePart(media_type="image/png", url="file:///etc/a.png"), "image-unavailable", "[image unavailable: "),
        (image(b"\0\0\0\x18ftypheic"), "image-unsupported", "[image not sent: image/heic is not taken"),
        (
            FilePart(media_type="video/mp4", data=b"x", filename="a.mp4"),
            "file-unsupported",
            "[file not sent: video/mp4 is not taken; source=a.mp4 size=1KB]",
        ),
    ],
)
def test_what_is_not_sent_is_reported_in_its_place(part: FilePart, loss: str, notice: str) -> None:
    text, losses = text_in_place(part)
    assert text.startswith(notice)
    assert losses == [loss]


def test_a_model_without_vision() -> None:
    text, losses = text_in_place(image(filename="a.png"), vision=False)
    assert text == "[image not sent: the model does not take it; source=a.png size=1KB]"
    assert losses == ["image-unsupported"]


def test_a_wrong_media_type_is_put_right() -> None:
    fitted, losses = fit(user(image(PNG, "image/jpeg")))
    (part,) = fitted[0].parts
    assert isinstance(part, FilePart)
    assert (part.media_type, losses) == ("image/png", [])


def test_what_is_taken() -> None:
    history = [
        user(image(), FilePart(media_type="audio/wav", data=b"x"), FilePart(media_type="image/*", url="https://e"))
    ]
    assert fit(*history) == (history, [])


def test_many_images_must_be_smaller() -> None:
    large, small = image(png(3000, 10)), image()
    assert fit(user(large, small))[1] == []
    fitted, losses = fit(user(large, small), assistant(call("c1", result(small))))
    assert losses == ["image-omitted"]
    assert [part.type for part in fitted[0].parts] == ["text", "file"]


def test_the_newest_get_the_room() -> None:
    """A run of the newest: a small old one is not sent where a newer one did not fit."""
    small, large = image(png(1, 1, 300)), image(png(1, 1, 600))
    history = [user(small, id="u1"), assistant(call("c1", result(large, small))), user(small, id="u2")]
    fitted, losses = fit(*history, inline_budget=1000)
    assert losses == ["image-omitted", "image-omitted"]
    assert fitted[0].parts[0].type == "text"
    answer = fitted[1].parts[0]
    assert isinstance(answer, ToolCallPart)
    assert [part.type for part in answer.results[0].content] == ["text", "file"]
    assert fitted[2] == history[2]


def test_the_newest_of_too_many_images_are_sent() -> None:
    """Addresses count too; other files do not."""
    limits = FileLimits(files=frozenset({"application/pdf"}), most_images=2)
    pdf = FilePart(media_type="application/pdf", data=b"%PDF")
    history = [user(image(), pdf, id="u1"), user(FilePart(media_type="image/png", url="https://e/a.png"), image())]
    fitted, losses = fit(*history, limits=limits)
    assert losses == ["image-omitted"]
    assert fitted[0].parts[1:] == (pdf,)
    assert fitted[1] == history[1]
    (notice, *_) = fitted[0].parts
    assert isinstance(notice, TextPart)
    assert notice.text.startswith("[image omitted from request: newer ones: at most 2 images are taken")


@pytest.mark.parametrize(
    ("name", "most", "bytes_of_one"),
    [
        ("anthropic", 100, 5 * 2**20),
        ("openai-chat", 500, 20 * 2**20),
        ("openrouter", 100, 5 * 2**20),
        ("responses", 500, 20 * 2**20),
        ("gemini", 3000, 20 * 2**20),
    ],
)
def test_each_provider_has_its_limits(name: str, most: int, bytes_of_one: int) -> None:
    """Images, as docs/reference/providers.md lists them, by the losses that the request itself names."""
    addresses = [FilePart(media_type="image/png", url=f"https://e/{number}") for number in range(most + 1)]
    losses = provider(name).to_request([user(*addresses)], asking()).losses
    assert [(loss.kind, "at most" in loss.detail) for loss in losses] == [("image-omitted", True)]
    fits, too_large = png(10, 10, bytes_of_one // 4 * 3 - 3), png(10, 10, bytes_of_one // 4 * 3 + 3)
    options = asking(inline_budget=2**30)
    assert provider(name).to_request([user(image(fits))], options).losses == ()
    (loss,) = provider(name).to_request([user(image(too_large))], options).losses
    assert loss.kind == "image-omitted"


@pytest.mark.parametrize("name", provider_names())
def test_each_provider_takes_its_kinds_of_images(name: str) -> None:
    kinds = {"png": PNG, "gif": b"GIF89a\1\0\1\0", "heic": b"\0\0\0\x18ftypheic", "svg": b"<svg/>"}
    taken = {"gemini": {"png", "heic"}}.get(name, {"png", "gif"})
    for kind, data in kinds.items():
        losses = provider(name).to_request([user(image(data, f"image/{kind}"))], asking()).losses
        expected = [] if kind in taken else ["image-unavailable" if kind == "svg" else "image-unsupported"]
        assert [loss.kind for loss in losses] == expected


def test_a_model_does_not_get_back_its_own_files() -> None:
    fitted, losses = fit(assistant("see", image()))
    assert [part.type for part in fitted[0].parts] == ["text", "text"]
    assert losses == ["assistant-file"]


def test_a_text_file_is_read_out() -> None:
    text, losses = text_in_place(FilePart(media_type="text/csv", data="a,é".encode(), filename="a.csv"))
    assert (text, losses) == ("[file a.csv]\na,é", [])


@pytest.mark.parametrize(
    ("data", "kind", "size"),
    [
        (png(640, 480), "image/png", (640, 480)),
        (b"GIF89a" + struct.pack("<HH", 7, 8), "image/gif", (7, 8)),
        (
            b"\xff\xd8\xff\xe0\x00\x04\x00\x00\xff\xc2\x00\x0b\x08" + struct.pack(">HH", 30, 40) + bytes(6),
            "image/jpeg",
            (40, 30),
        ),
        (b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0" + bytes(6) + struct.pack("<HH", 50, 60), "image/webp", (50, 60)),
        (b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 69 | 79 << 14), "image/webp", (70, 80)),
        (b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0" + b"\x59\0\0\x63\0\0", "image/webp", (90, 100)),
        (PNG[:10], "image/png", None),
        (b"\xff\xd8\xff\xe0", "image/jpeg", None),
        (b"<svg/>", None, None),
        (b"", None, None),
    ],
)
def test_what_an_image_s_first_bytes_show(data: bytes, kind: str | None, size: tuple[int, int] | None) -> None:
    assert (image_type(data), image_size(data)) == (kind, size)


_THUMBNAIL = b"\xff\xe1\x00\x08\xff\xd8\xff\xda\xff\xd9"
"""A segment of a JPEG with a small picture in it, which has an end of its own."""


@pytest.mark.parametrize(
    "whole",
    [
        PNG,
        b"\xff\xd8" + _THUMBNAIL + b"\xff\xff\xe0\x00\x02\xff\xda\x00\x02\x11\x22\xff\x00\x33\xff\xd9",
        b"GIF89a\x01\0\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0;",
        b"RIFF\x0c\0\0\0WEBPVP8 \0\0\0\0",
    ],
    ids=["png", "jpeg", "gif", "webp"],
)
def test_an_image_without_its_end_is_cut_one_with_more_is_not(whole: bytes) -> None:
    assert not is_cut(whole)
    assert not is_cut(whole + b"more")
    begins = len(b"\xff\xd8\xff\xe1") if whole.startswith(b"\xff\xd8") else 12
    assert all(is_cut(whole[:size]) for size in range(begins, len(whole)))
