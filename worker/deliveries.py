"""What went wrong with the records that a producer was given (E7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.errors import (
    Outcome,
    TransactionError,
    UndeliverableError,
    is_expected_after_abort,
    is_hopeless,
    is_undeliverable,
)

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message


class Deliveries:
    """Of the transaction at hand of one producer; each producer has its own, so that the reports of one left behind do not count."""

    def __init__(self) -> None:
        self._failed: list[tuple[str | None, KafkaError]] = []

    def __bool__(self) -> bool:
        """Whether any failed."""
        return bool(self._failed)

    def note(self, error: KafkaError | None, message: Message) -> None:
        """To be called for every delivery report."""
        if error is not None and not is_expected_after_abort(error):
            self._failed.append((message.topic(), error))

    def clear(self) -> None:
        """The transaction is over."""
        self._failed.clear()

    def first(self) -> TransactionError:
        """What the first failure means for the transaction."""
        topic, failed = self._failed[0]
        outcome = Outcome.FATAL if is_hopeless(failed) else Outcome.ABORT
        return TransactionError(outcome, f"deliver to {topic}", failed)

    def undeliverable(self) -> UndeliverableError | None:
        """The first failure that no retry mends (E8), if there is one."""
        for topic, failed in self._failed:
            if is_undeliverable(failed):
                return UndeliverableError({}, f"{failed.name()}: {failed.str()} (topic {topic})")
        return None
