"""The steps of a pipeline, one file each. A new one is added to `STEPS` and `AnyStep` below, and nowhere else."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import Discriminator, Tag

from transforms.steps.base import Step
from transforms.steps.drop import DropStep
from transforms.steps.filter import FilterStep
from transforms.steps.keep import KeepStep
from transforms.steps.rename import RenameStep
from transforms.steps.route import RouteStep
from transforms.steps.set import SetStep

STEPS: dict[str, type[Step]] = {
    "filter": FilterStep,
    "set": SetStep,
    "rename": RenameStep,
    "drop": DropStep,
    "keep": KeepStep,
    "route": RouteStep,
}


def step_name(step: object) -> str | None:
    """The key that says which step a mapping, or a model, is; None where no key is one."""
    keys = step if isinstance(step, dict) else type(step).model_fields if isinstance(step, Step) else ()
    return next((key for key in keys if key in STEPS), None)


def _tag(step: Any) -> str | None:
    name = step_name(step)
    return None if name is None else f"<{name}>"


AnyStep: TypeAlias = Annotated[
    Annotated[FilterStep, Tag("<filter>")]
    | Annotated[SetStep, Tag("<set>")]
    | Annotated[RenameStep, Tag("<rename>")]
    | Annotated[DropStep, Tag("<drop>")]
    | Annotated[KeepStep, Tag("<keep>")]
    | Annotated[RouteStep, Tag("<route>")],
    Discriminator(_tag),
]
"""A mapping of one key. The tags are no keys of any file, so that the place of an error is not misread."""

__all__ = ["STEPS", "AnyStep", "Step", "step_name"]
