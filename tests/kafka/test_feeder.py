"""The demo's orders come for as long as somebody needs them to come."""

from __future__ import annotations

from devkit.feeder import Feeder
from devkit.orders import orders
from devkit.reader import Reader
from tests.support.broker import create_topics, unique
from tests.support.waiting import await_true


def test_the_last_orders_are_held_in_reserve_until_it_may_hurry(bootstrap: str) -> None:
    """At the full rate all of them would be there in a tenth of a second; each comes once, and in order."""
    topic = unique("orders")
    create_topics(bootstrap, {topic: 1})
    with Feeder(bootstrap, topic, 1000, seconds=0.1) as feeder:
        await_true(lambda: feeder.sent > 405, "it goes on beyond the first four tenths")
        assert not feeder.done
        assert feeder.sent < 1000
        feeder.hurry()
        await_true(lambda: feeder.done, "all are produced")
        assert feeder.sent == feeder.kinds.total() == 1000
    with Reader(bootstrap) as reader:
        assert [order.value for order in orders(1000)] == [record.value for record in reader.read([topic])]
