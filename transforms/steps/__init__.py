"""The steps of a pipeline, one file each. A new one is added to `STEPS` and `AnyStep` below, and nowhere else."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import Discriminator, Tag

from transforms.steps.assert_ import AssertStep
from transforms.steps.base import Step
from transforms.steps.cast import CastStep
from transforms.steps.default import DefaultStep
from transforms.steps.drop import DropStep
from transforms.steps.explode import ExplodeStep
from transforms.steps.filter import FilterStep
from transforms.steps.flatten import FlattenStep
from transforms.steps.headers import HeadersStep
from transforms.steps.keep import KeepStep
from transforms.steps.key import KeyStep
from transforms.steps.mask import MaskStep
from transforms.steps.parse_json import ParseJsonStep
from transforms.steps.parse_time import ParseTimeStep
from transforms.steps.python import PythonStep
from transforms.steps.rename import RenameStep
from transforms.steps.route import RouteStep
from transforms.steps.route_all import RouteAllStep
from transforms.steps.set import SetStep
from transforms.steps.tombstone import TombstoneStep
from transforms.steps.validate import ValidateStep
from transforms.steps.value import ValueStep

STEPS: dict[str, type[Step]] = {
    "filter": FilterStep,
    "assert": AssertStep,
    "validate": ValidateStep,
    "set": SetStep,
    "default": DefaultStep,
    "rename": RenameStep,
    "drop": DropStep,
    "keep": KeepStep,
    "cast": CastStep,
    "parse_json": ParseJsonStep,
    "parse_time": ParseTimeStep,
    "mask": MaskStep,
    "flatten": FlattenStep,
    "value": ValueStep,
    "explode": ExplodeStep,
    "python": PythonStep,
    "key": KeyStep,
    "headers": HeadersStep,
    "tombstone": TombstoneStep,
    "route": RouteStep,
    "route_all": RouteAllStep,
}
"""In the order of their documentation."""
_NAMES = {model: name for name, model in STEPS.items()}


def step_name(step: object) -> str | None:
    """The key that says which step a mapping, or a model, is; None where no key is one."""
    if isinstance(step, Step):
        return _NAMES[type(step)]
    return next((key for key in step if key in STEPS), None) if isinstance(step, dict) else None


def _tag(step: Any) -> str | None:
    name = step_name(step)
    return None if name is None else f"<{name}>"


AnyStep: TypeAlias = Annotated[
    Annotated[FilterStep, Tag("<filter>")]
    | Annotated[AssertStep, Tag("<assert>")]
    | Annotated[ValidateStep, Tag("<validate>")]
    | Annotated[SetStep, Tag("<set>")]
    | Annotated[DefaultStep, Tag("<default>")]
    | Annotated[RenameStep, Tag("<rename>")]
    | Annotated[DropStep, Tag("<drop>")]
    | Annotated[KeepStep, Tag("<keep>")]
    | Annotated[CastStep, Tag("<cast>")]
    | Annotated[ParseJsonStep, Tag("<parse_json>")]
    | Annotated[ParseTimeStep, Tag("<parse_time>")]
    | Annotated[MaskStep, Tag("<mask>")]
    | Annotated[FlattenStep, Tag("<flatten>")]
    | Annotated[ValueStep, Tag("<value>")]
    | Annotated[ExplodeStep, Tag("<explode>")]
    | Annotated[PythonStep, Tag("<python>")]
    | Annotated[KeyStep, Tag("<key>")]
    | Annotated[HeadersStep, Tag("<headers>")]
    | Annotated[TombstoneStep, Tag("<tombstone>")]
    | Annotated[RouteStep, Tag("<route>")]
    | Annotated[RouteAllStep, Tag("<route_all>")],
    Discriminator(_tag),
]
"""A mapping of one key. The tags are no keys of any file, so that the place of an error is not misread."""

__all__ = ["STEPS", "AnyStep", "RouteAllStep", "RouteStep", "Step", "step_name"]
