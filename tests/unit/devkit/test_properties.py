"""Broker settings for one and three nodes."""

from __future__ import annotations

from pathlib import Path

from devkit.properties import node_properties, render


def test_one_node_keeps_one_copy() -> None:
    """Listeners on loopback only, and internal topics that one node can hold."""
    properties = node_properties(1, [(1111, 2222)], Path("/data"))
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:1111,CONTROLLER://127.0.0.1:2222"
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:2222"
    copies = {
        name: value
        for name, value in properties.items()
        if "replication.factor" in name or name.endswith((".isr", "insync.replicas"))
    }
    assert set(copies.values()) == {"1"}
    assert len(copies) == 7
    assert "broker.session.timeout.ms" not in properties, "nobody takes the place of the only node"


def test_three_nodes_keep_three_copies_and_need_two() -> None:
    """One of three may fail: three copies, two in sync; every node knows all controllers."""
    properties = node_properties(2, [(1, 11), (2, 12), (3, 13)], Path("/data"))
    assert properties["node.id"] == "2"
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:11,2@127.0.0.1:12,3@127.0.0.1:13"
    assert {value for name, value in properties.items() if name.endswith("replication.factor")} == {"3"}
    assert {value for name, value in properties.items() if name.endswith((".isr", "insync.replicas"))} == {"2"}
    assert properties["broker.session.timeout.ms"] == "3000"


def test_named_settings_win() -> None:
    """What the user names replaces the devkit's own."""
    properties = node_properties(1, [(1, 2)], Path("/data"), {"log.retention.ms": "5"})
    assert properties["log.retention.ms"] == "5"


def test_render_escapes_backslashes() -> None:
    """Java's property files read a backslash as an escape."""
    assert render({"a": "b", "path": "c\\d"}) == "a=b\npath=c\\\\d\n"
