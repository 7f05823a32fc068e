"""base64."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.transforms.cel.library.checks import fails, gives, no_overload
from transforms.cel.library.encoders import base64_decode, base64_encode


def test_encode() -> None:
    gives("", base64_encode(b""))
    gives("AP8=", base64_encode(b"\x00\xff"))
    gives("+/+/", base64_encode(b"\xfb\xff\xbf"))
    no_overload("base64.encode(string)", base64_encode, "a")
    no_overload("base64.encode(null)", base64_encode, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", b""),
        ("YQ==", b"a"),
        ("YQ", b"a"),
        ("YWI=", b"ab"),
        ("YWI", b"ab"),
        ("YWJj", b"abc"),
        ("YW\r\nJj\n", b"abc"),
    ],
)
def test_decode(text: str, expected: bytes) -> None:
    """With padding or without; line breaks say nothing."""
    gives(expected, base64_decode(text))


@pytest.mark.parametrize(
    "text", ["Y", "YQ=", "Y===", "=", "====", "YWJj=", "YQ==YQ==", "Y Q=", "YQ-_", "é", "YWJ\ud800", "a" * 5]
)
def test_what_is_no_base64(text: str) -> None:
    fails("base64.decode: the string is not base64", base64_decode, text)


def test_types_of_decode() -> None:
    no_overload("base64.decode(bytes)", base64_decode, b"YQ==")
    no_overload("base64.decode(int)", base64_decode, 1)


@given(st.binary(max_size=40))
def test_bytes_come_back(value: bytes) -> None:
    assert base64_decode(base64_encode(value)) == value
    assert base64_decode(base64_encode(value).rstrip("=")) == value
