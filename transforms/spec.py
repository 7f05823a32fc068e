"""The pipeline file as pydantic models: unknown keys are refused, `Pipeline` is the whole file."""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from transforms import checks
from transforms.steps import AnyStep  # noqa: TC001 - pydantic needs it at run time
from transforms.steps.base import Model, TopicName
from transforms.steps.route import RouteStep


def _check_setting(value: object) -> object:
    if not isinstance(value, str | int | float | bool):
        # One error here; the union would report one per type.
        raise PydanticCustomError("setting", "not a client setting, expected text, a number, true or false")
    return value


ClientSettings: TypeAlias = dict[str, Annotated[str | int | float | bool, BeforeValidator(_check_setting)]]
"""librdkafka's names and values. They may hold secrets, so no model shows them in its repr."""


class Source(Model):
    topics: Annotated[list[TopicName], Field(min_length=1)]
    start: Literal["earliest", "latest"] = "earliest"
    """Where a group without offsets starts. New partitions always start at their beginning (rule R5)."""


class Sink(Model):
    topic: TopicName


class DeadLetterLimit(Model):
    share: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 0.5
    """Of the last `window` records."""
    window: Annotated[int, Field(gt=0)] = 10_000
    absolute: Annotated[int, Field(gt=0)] | None = None
    """Dead letters since the start of the worker; None: no such limit."""


class DeadLetters(Model):
    topic: TopicName | None = None
    """None stands for `<name>.dead-letters`."""
    limit: DeadLetterLimit = DeadLetterLimit()


class TransactionLimits(Model):
    records: Annotated[int, Field(gt=0)] = 50_000
    bytes: Annotated[int, Field(gt=0)] = 33_554_432
    """Of source records: keys and values."""
    interval_ms: Annotated[int, Field(gt=0)] = 100


class Pipeline(Model):
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=200)]
    """Prefix of the topics for receipts and dead letters and of the transactional id; the default group id."""
    source: Source
    sink: Sink | None = None
    steps: list[AnyStep] = Field(default_factory=list)
    tombstones: Literal["forward", "drop"] = "forward"
    """A null value is a delete. It goes to every topic that an output can go to: there the key may be."""
    dead_letters: DeadLetters = DeadLetters()
    transaction: TransactionLimits = TransactionLimits()
    lineage: bool = True
    receipts: TopicName | None = None
    """None stands for `<name>.receipts`; see `receipts_topic`."""
    group_id: Annotated[str, Field(min_length=1)] | None = None
    """None stands for the name; see `group`."""
    kafka: ClientSettings = Field(default_factory=dict, repr=False)
    consumer: ClientSettings = Field(default_factory=dict, repr=False)
    producer: ClientSettings = Field(default_factory=dict, repr=False)

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        for problem in checks.whole_file(self.model_dump()):
            raise ValueError(problem.message)
        return self

    @property
    def route(self) -> RouteStep | None:
        last = self.steps[-1] if self.steps else None
        return last if isinstance(last, RouteStep) else None

    @property
    def topics(self) -> tuple[str, ...]:
        """Every topic that an output can go to, sorted; neither dead letters nor receipts."""
        routed = [route.to for route in self.route.route] if self.route else []
        default = self.route.default if self.route else None
        return tuple(sorted({*routed, *([self.sink.topic] if self.sink and default is None else [])}))

    @property
    def dead_letter_topic(self) -> str:
        return self.dead_letters.topic or f"{self.name}.dead-letters"

    @property
    def receipts_topic(self) -> str:
        return self.receipts or f"{self.name}.receipts"

    @property
    def group(self) -> str:
        return self.group_id or self.name
