"""The flame graph of a node: what is drawn of a profiler's stacks, and how wide."""

import re
from xml.etree import ElementTree

from benchmarks.guarding.flame_graph import LEAST_SHARE, WIDTH, drawing, flame_of

START = "_start (libc.so.6);<module> (kustos/__main__.py:6);uv_run (core.c:464);uv__read (stream.c:1154)"
TAKES = "ClientSession.take (kustos/gateway/session/client_session.py:{})"
STACKS = [
    f"{START};{TAKES.format(1)};{TAKES.format(2)};_PyEval (python3.11);<write> & (kustos/wire/a.py:7) 30",
    f"{START};{TAKES.format(3)};exec_write (loop.c:9);write (libc.so.6) 60",
    f"{START};read (libc.so.6) 9",
    "Thread.run (threading.py:975);_worker (concurrent/futures/thread.py:81);lock (libc.so.6) 500",
    "Thread.run (threading.py:975);JsonFilesSink._append (kustos/gateway/audit/json_files.py:9) 1",
]
BOX = "{http://www.w3.org/2000/svg}g"


def test_only_what_says_where_time_goes_is_kept() -> None:
    root = flame_of(STACKS)
    assert root.samples == 100
    assert {each.name: each.samples for each in root.seen(0)} == {
        "event loop": 99,
        "JsonFilesSink._append": 1,
    }
    loop = root.below["event loop"]
    assert {each.name: each.samples for each in loop.seen(0)} == {"ClientSession.take": 90, "read": 9}
    take = loop.below["ClientSession.take"]
    assert {(each.name, each.package) for each in take.seen(0)} == {
        ("event loop", "event loop"),
        ("<write> &", "wire"),
    }
    assert take.below["event loop"].below["write"].package == "kernel"


def test_boxes_are_as_wide_as_their_share_and_inside_those_above() -> None:
    drawn = ElementTree.fromstring(drawing(flame_of(STACKS)))
    boxes = {}
    for group in drawn.iter(BOX):
        title, rect = group[0].text, group[1].attrib
        assert title is not None
        boxes[title] = (float(rect["x"]), float(rect["width"]), int(rect["y"]))
    assert len(boxes) == 8
    for title, (left, width, _) in boxes.items():
        share = float(re.findall(r"([\d.]+) %", title)[0]) / 100
        assert abs(width + 1 - WIDTH * share) < 1
        assert left + width <= WIDTH
    assert boxes["<write> &: 30.0 %"][2] == boxes["event loop: 60.0 %"][2] > boxes["read: 9.0 %"][2]


def test_what_is_too_narrow_to_be_seen_is_not_drawn() -> None:
    few = int(1 / LEAST_SHARE) + 1
    stacks = [STACKS[0].replace(" 30", f" {few}"), f"{START};rare (libc.so.6);read (libc.so.6) 1"]
    assert "read" not in drawing(flame_of(stacks))
