"""What can go wrong with the broker on a laptop: one class per cause, one clear message each."""

from __future__ import annotations


class DevkitError(Exception):
    """Base of everything the devkit raises on purpose; its text is fit to be shown to a user as it is."""


class JavaMissingError(DevkitError):
    """No Java that can run the broker was found."""


class JarsError(DevkitError):
    """A lock file is unreadable, or a jar could not be had: download refused, or the bytes are not the pinned ones."""


class PortTakenError(DevkitError):
    """A port the broker was told to listen on is in use."""


class BrokerDiedError(DevkitError):
    """A node ended without being asked to; the message ends with the tail of its log."""


class BrokerTimeoutError(DevkitError):
    """A node runs but did not answer in time; the message ends with the tail of its log."""
