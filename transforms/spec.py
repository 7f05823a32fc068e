"""The pipeline file as pydantic models: unknown keys are refused, `Pipeline` is the whole file."""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from transforms import checks, topic_pattern
from transforms.formats import FORMATS, Format
from transforms.steps import AnyStep, RouteAllStep, RouteStep
from transforms.steps.base import Model, TopicName
from transforms.wording import meant
from transforms.yaml_tests import PipelineTest  # noqa: TC001 - pydantic needs it at run time


def _check_setting(value: object) -> object:
    if not isinstance(value, str | int | float | bool):
        # One error here; the union would report one per type.
        raise PydanticCustomError("setting", "not a client setting, expected text, a number, true or false")
    return value


ClientSettings: TypeAlias = dict[str, Annotated[str | int | float | bool, BeforeValidator(_check_setting)]]
"""librdkafka's names and values. They may hold secrets, so no model shows them in its repr."""


def _check_pattern(text: str) -> str:
    problem = topic_pattern.problem(text)
    if problem is not None:
        raise PydanticCustomError("pattern", "{problem}", {"problem": problem})
    return text


def _check_format(value: object) -> object:
    if not (value in FORMATS or (isinstance(value, dict) and all(form in FORMATS for form in value.values()))):
        # One error here; the union would report one per type.
        wrong = [form for form in value.values() if form not in FORMATS] if isinstance(value, dict) else [value]
        text = (
            f"not a format, expected json, string or bytes, or a mapping of topics to formats{meant(wrong[0], FORMATS)}"
        )
        raise PydanticCustomError("format", "{text}", {"text": text})
    return value


class Source(Model):
    topics: Annotated[list[TopicName], Field(min_length=1)] = Field(default_factory=list)
    """Empty where there is a pattern."""
    pattern: Annotated[str, AfterValidator(_check_pattern)] | None = None
    """In the place of `topics`: all topics whose names match, as librdkafka's `subscribe()` takes it (`^...`)."""
    start: Literal["earliest", "latest"] = "earliest"
    """Where a group without offsets starts. New partitions always start at their beginning (rule R5)."""
    format: Annotated[Format | dict[TopicName, Format], BeforeValidator(_check_format)] = "json"
    """Of the values: one for all topics, or by topic; topics that it does not name are JSON."""
    key_format: Format = "string"
    """What expressions take `key` for; the key itself goes on as it is."""

    @property
    def formats(self) -> dict[str | None, Format]:
        """Format per topic; None stands for all topics that are not named."""
        if isinstance(self.format, str):
            return {None: self.format}
        named: dict[str | None, Format] = dict(sorted(self.format.items()))
        every = bool(self.topics) and set(self.topics) <= self.format.keys()
        return named if every else {**named, None: "json"}


class Sink(Model):
    topic: TopicName
    format: Format = "json"


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
    records: Annotated[int, Field(gt=0)] = 120_000
    bytes: Annotated[int, Field(gt=0)] = 33_554_432
    """Of the source records' values."""
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
    tests: list[PipelineTest] = Field(default_factory=list)
    """What `reckon test` runs; nothing that outputs depend on."""

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        for problem in checks.whole_file(self.model_dump()):
            raise ValueError(problem.message)
        return self

    @property
    def route(self) -> RouteStep | RouteAllStep | None:
        last = self.steps[-1] if self.steps else None
        return last if isinstance(last, RouteStep | RouteAllStep) else None

    @property
    def topic_formats(self) -> dict[str, Format]:
        """Every topic that an output can go to, sorted, and its format; neither dead letters nor receipts."""
        found = {route.to: route.format for route in self.route.routes} if self.route else {}
        if self.sink and (self.route is None or self.route.default is None):
            found.setdefault(self.sink.topic, self.sink.format)
        return dict(sorted(found.items()))

    @property
    def topics(self) -> tuple[str, ...]:
        """Every topic that an output can go to, sorted; neither dead letters nor receipts."""
        return tuple(self.topic_formats)

    @property
    def dead_letter_topic(self) -> str:
        return self.dead_letters.topic or f"{self.name}.dead-letters"

    @property
    def receipts_topic(self) -> str:
        return self.receipts or f"{self.name}.receipts"

    @property
    def group(self) -> str:
        return self.group_id or self.name
