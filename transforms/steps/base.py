"""What every step is: a pydantic model of its YAML, one line of documentation, an example that is a test, its code."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict
from pydantic_core import PydanticCustomError

from transforms.cel import Constants, compile_expression
from transforms.errors import CelSyntaxError

if TYPE_CHECKING:
    from transforms.cel.compile import Wanted
    from transforms.code import Code


@dataclass(frozen=True, slots=True)
class Kind:
    """What a text is, for the documentation; beside the checks in an annotation."""

    name: str


def _as_text(value: object) -> object:
    """Pipelines that do not come from YAML may write 2, True or None for the expressions `2`, `true`, `null`."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value) if isinstance(value, int | float) else value


def _check(text: str, wanted: Wanted) -> str:
    try:
        compile_expression(text, wanted, Constants())
    except CelSyntaxError as error:
        raise PydanticCustomError("cel", "{message}", {"message": error.message, "offset": error.offset}) from None
    return text


Condition: TypeAlias = Annotated[
    str, Kind("condition"), BeforeValidator(_as_text), AfterValidator(lambda text: _check(text, "bool"))
]
"""CEL that must give a bool."""
Value: TypeAlias = Annotated[
    str, Kind("expression"), BeforeValidator(_as_text), AfterValidator(lambda text: _check(text, "json"))
]
"""CEL that must give something that JSON can hold."""
AnyValue: TypeAlias = Annotated[
    str, Kind("expression"), BeforeValidator(_as_text), AfterValidator(lambda text: _check(text, "any"))
]
"""CEL that may also give bytes."""

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


def _check_topic(name: str) -> str:
    if not _TOPIC.fullmatch(name) or name in (".", ".."):
        raise PydanticCustomError("topic", "not a topic name, expected 1 to 249 letters, digits, '.', '_' or '-'")
    return name


TopicName: TypeAlias = Annotated[str, Kind("topic"), AfterValidator(_check_topic)]
"""As Kafka takes it: org.apache.kafka.common.internals.Topic."""


@dataclass(frozen=True, slots=True)
class Given:
    """An input of an example that is more than a value."""

    value: Any
    key: str | None = None
    headers: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """An output of an example; value None is a tombstone. Key and headers are compared where they are given."""

    value: Any
    topic: str = "out"
    key: str | None = None
    headers: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """Documentation that is run: `inputs` through a pipeline of the one step in `yaml` give `outputs`."""

    yaml: str
    inputs: list[Any]
    """JSON values, or `Given`."""
    outputs: list[Made]
    """The sink's topic is `out`."""
    failures: list[str] = field(default_factory=list)
    """Class and message of the inputs that become dead letters."""


class Model(BaseModel):
    """Unknown keys are errors, text is not taken for numbers, and a pipeline does not change once it is read."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, serialize_by_alias=True, use_attribute_docstrings=True
    )


class Step(Model):
    summary: ClassVar[str]
    example: ClassVar[Example]
    notes: ClassVar[str] = ""
    """What the summary has no room for; Markdown."""

    @abstractmethod
    def emit(self, code: Code) -> None:
        """Writes the lines that do this step for one record."""

    def fingerprint(self) -> Any:
        """What the outputs of this step depend on, as JSON; no secrets."""
        return self.model_dump(mode="json")
