"""mask: make personal data unreadable."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import Field, SecretStr, model_validator
from pydantic_core import PydanticCustomError

from transforms.formats import json_bytes
from transforms.steps.base import Example, Made, Model, Step
from transforms.steps.paths import FieldPath, look, put, read, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from transforms.code import Code


SALT = ("mask", "sha256", "salt")
"""The path of the one value of a step that may, and must, come from outside of the file."""


def _bytes(value: Any) -> bytes:
    return value.encode() if type(value) is str else json_bytes(value)


def hashing(salt: str) -> Callable[[Any], str]:
    """SHA-256 in hexadecimal digits of the salt and the value behind it, both as UTF-8: sha2(concat(salt, value), 256) in Spark."""
    salted = hashlib.sha256(salt.encode())

    def digest(value: Any) -> str:
        state = salted.copy()
        state.update(_bytes(value))
        return state.hexdigest()

    return digest


def keep_last(value: Any, count: int) -> str:
    """Stars for all but the last characters; for all, where there are no more than these."""
    text = _bytes(value).decode()
    shown = text[len(text) - count :] if len(text) > count else ""
    return "*" * (len(text) - len(shown)) + shown


class Hashing(Model):
    salt: Annotated[SecretStr, Field(min_length=1)]
    """A `${NAME}` or `${file:/path}` reference; it is shown nowhere."""


class Mask(Model):
    fields_: Annotated[list[FieldPath], Field(min_length=1, alias="fields")]
    sha256: Hashing | None = None
    keep_last: Annotated[int, Field(ge=0, strict=False)] | None = None
    """How many characters stay; the others become stars."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.sha256 is None) == (self.keep_last is None):
            raise PydanticCustomError("mask", "a mask needs one of the keys sha256 and keep_last")
        return self


class MaskStep(Step):
    summary: ClassVar = "Replaces values by their salted SHA-256, or by stars up to their last characters."
    example: ClassVar = Example(
        yaml="mask: {fields: [card, customer.phone], keep_last: 4}",
        inputs=[{"card": "4111111111111111", "customer": {"phone": 49301234}}, {"card": "123", "customer": None}],
        outputs=[
            Made({"card": "************1111", "customer": {"phone": "****1234"}}),
            Made({"card": "***", "customer": None}),
        ],
    )
    notes: ClassVar = (
        'The other form: `mask: {fields: [email], sha256: {salt: "${EMAIL_SALT}"}}`. The same value gives the '
        "same digits, so that masked fields can still be joined and counted; without the salt nobody can try out "
        "values. The digits are those of `sha256(salt + value)`, in UTF-8. Values that are no text are masked as "
        "their JSON. A field that is missing or null is left alone."
    )

    mask: Mask

    def emit(self, code: Code) -> None:
        code.need_object("mask")
        for helper in (keep_last, look, put):
            code.use(helper)
        of = self.mask
        # Bound by name: the salt must not stand in the generated source, which people print.
        hasher = None if of.sha256 is None else code.constants.bind(hashing(of.sha256.salt.get_secret_value()))
        for path in of.fields_:
            code.write(f"v = {read(path)}")
            with code.block("if v is not None:"):
                code.write(write(path, f"{hasher}(v)" if hasher else f"keep_last(v, {of.keep_last})"))
        code.change(*of.fields_)

    def fingerprint(self) -> Any:
        of = self.mask
        salt = None if of.sha256 is None else hashlib.sha256(of.sha256.salt.get_secret_value().encode()).hexdigest()
        return {"mask": [of.fields_, salt, of.keep_last]}
