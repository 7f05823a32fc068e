"""What ends an audit before its judgement: one class per exit code, texts fit to be shown as they are."""

from __future__ import annotations

from spark_batch.model import ExitCode


class AuditError(Exception):
    """Base; `exit_code` is the process's."""

    exit_code = ExitCode.CANNOT_JUDGE


class CannotStartError(AuditError):
    """No Java, no jars, no broker: nothing was judged."""


class CannotJudgeError(AuditError):
    """The topics or the group do not allow a cut."""


class BadArgumentsError(AuditError):
    """Arguments, the pipeline file, a client setting or the state folder are not usable."""

    exit_code = ExitCode.BAD_ARGUMENTS
