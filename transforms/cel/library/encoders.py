"""The extension `encoders` of cel-go: base64 of RFC 4648, section 4."""

from __future__ import annotations

import binascii
from base64 import b64encode
from typing import Any

from transforms.cel.runtime import no_overload
from transforms.errors import CelError


def base64_encode(value: Any) -> str:
    """With padding."""
    if type(value) is not bytes:
        raise no_overload("base64.encode", value)
    return b64encode(value).decode()


def base64_decode(text: Any) -> bytes:
    """With padding or without any; line breaks are skipped, as in cel-go."""
    if type(text) is not str:
        raise no_overload("base64.decode", text)
    plain = text.replace("\r", "").replace("\n", "")
    if "=" not in plain:
        plain += "=" * (-len(plain) % 4)
    if len(plain) % 4:  # not left to a2b_base64(), which takes "YWJj=" even in strict mode
        raise _not_base64()
    try:
        return binascii.a2b_base64(plain, strict_mode=True)
    except ValueError:  # binascii.Error is one
        raise _not_base64() from None


def _not_base64() -> CelError:
    return CelError("base64.decode: the string is not base64")
