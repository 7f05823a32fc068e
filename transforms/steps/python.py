"""python: a function of one's own."""

from __future__ import annotations

import importlib
import math
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from transforms import python_sources
from transforms.errors import PythonError, TimeBudgetExceeded
from transforms.steps.base import Example, Kind, Made, Step
from transforms.wording import meant

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from transforms.code import Code

_SCALARS = (str, bool, type(None))
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
"""What orjson writes."""


def load(name: str) -> Callable[[Any], Any]:
    """The function `package.module:function`. PydanticCustomError, in words for a pipeline file, where it cannot be had."""
    module, colon, function = name.partition(":")
    if not (colon and all(part.isidentifier() for part in [*module.split("."), *function.split(".")])):
        raise _problem("not a function, expected package.module:function")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise _problem(
            f"no module {error.name!r}, expected it to be installed, or its folder to be in PYTHONPATH"
        ) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a module does while it is imported, be it sys.exit()
        raise _problem(f"the module {module!r} cannot be imported: {type(error).__name__}: {error}") from None
    for part in function.split("."):
        if not hasattr(found, part):
            functions = [name for name, value in getattr(found, "__dict__", {}).items() if callable(value)]
            hint = meant(part, functions) or ", expected a function"
            raise _problem(f"the module {module!r} has no {function!r}{hint}")
        found = getattr(found, part)
    if not callable(found):
        raise _problem(f"{function!r} of the module {module!r} is no function, expected one")
    return found  # type: ignore[no-any-return]


def _problem(text: str) -> PydanticCustomError:
    return PydanticCustomError("python", "{text}", {"text": text})


def _check(name: str) -> str:
    load(name)
    return name


def calling(name: str) -> Callable[[Any], Any]:
    """Calls the function with a record of its own. What it raises, and what it returns that JSON cannot hold, is a `PythonError`."""
    function = load(name)

    def call(record: Any) -> Any:
        try:
            result = function(_own(record))
        except (TimeBudgetExceeded, RecursionError, MemoryError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - the function is not ours; one that calls sys.exit() ends no worker
            # Not str(error): it may quote the record.
            raise PythonError(f"{name} raised {type(error).__name__}{_place(error.__traceback__)}") from None
        if result is None:
            raise PythonError(f"{name} returned None, expected a record")
        _require_json(name, result)
        return result

    return call


def _place(trace: TracebackType | None) -> str:
    """The line of the function's own file, so that its author finds it."""
    inner = trace.tb_next if trace is not None else None
    return f" in line {inner.tb_lineno}" if inner is not None else ""


def _own(value: Any) -> Any:
    """A copy: a function that changes its argument must not change another field, or another output of the same record."""
    if type(value) is dict:
        return {key: _own(item) for key, item in value.items()}
    return [_own(item) for item in value] if type(value) is list else value


def _require_json(name: str, value: Any) -> None:
    kind = type(value)
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise PythonError(f"{name} returned a key of the type {type(key).__name__}, expected text")
            _require_json(name, item)
    elif kind is list:
        for item in value:
            _require_json(name, item)
    elif kind is int:
        if not _INT_MIN <= value <= _INT_MAX:
            raise PythonError(f"{name} returned a number of more than 64 bits")
    elif kind is float:
        if not math.isfinite(value):
            raise PythonError(f"{name} returned a number that is not finite")
    elif kind not in _SCALARS:
        raise PythonError(f"{name} returned a value of the type {kind.__name__}, expected what JSON can hold")


class PythonStep(Step):
    summary: ClassVar = "Makes what a function of yours returns the whole value: `package.module:function`."
    example: ClassVar = Example(
        yaml="python: transforms.steps.example:with_initials",
        inputs=[{"name": "Ada Lovelace"}, {"nam": "Ada"}],
        outputs=[Made({"name": "Ada Lovelace", "initials": "AL"})],
        failures=["PythonError: transforms.steps.example:with_initials raised KeyError in line 9"],
    )
    notes: ClassVar = (
        "The function is given the value, a dict of its own, and returns a value that JSON can hold. It must be "
        "**pure**: the same value gives the same result, in any process, today and tomorrow. No clock, no random "
        "numbers, no network, no state from record to record, no order of a set. A batch is transformed again "
        "after an abort, and the audit transforms a sample once more, long after, and compares bytes. An "
        "exception, be it `SystemExit`, makes a dead letter, with its class and line, but without its text, which might quote the "
        "record. The module is imported when the pipeline is loaded, by its name as Python finds it "
        "(`PYTHONPATH`, installed packages). The pipeline's digest covers the text of that module and of all that it "
        "imports from its own top-level package, not of other packages. `except Exception` must not swallow `TimeBudgetExceeded`."
    )

    python: Annotated[str, Kind("`package.module:function`"), AfterValidator(_check)]

    def emit(self, code: Code) -> None:
        code.write(f"r = {code.constants.bind(calling(self.python))}(r)")
        code.object = False
        code.change()

    def fingerprint(self) -> Any:
        return {"python": [self.python, python_sources.digest(self.python.partition(":")[0])]}
