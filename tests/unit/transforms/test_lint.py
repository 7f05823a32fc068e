"""What lint says about each kind of mistake, where, and that what it says is true."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.support.records import Record
from transforms.compiler import compile_pipeline
from transforms.lint import Finding, lint_files
from transforms.loading import load_pipeline
from transforms.samples import encoded

if TYPE_CHECKING:
    from transforms.spec import Pipeline

HEAD = "name: p\nsource: {topics: [in]}\nsink: {topic: out}\n"
STEPS = HEAD + "steps:\n"


def lint(tmp_path: Path, text: str, name: str = "p.yaml") -> list[str]:
    """`line:column: severity: message [rule]` of every finding."""
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return [str(finding).removeprefix(f"{file}:") for finding in lint_files([file], {})]


CASES: dict[str, tuple[str, list[str]]] = {
    "nothing wrong": (
        STEPS
        + '  - filter: status == "ok" && amount > 0.0\n  - set: {a: amount * 2.0}\n  - route: [{when: a > 9.0, to: big}]\n',
        [],
    ),
    "does not load, and more": (
        STEPS + "  - renam: {a: b}\n  - filter: 1 + 'a' == b\n  - drop: [x]\n  - filter: x == 1\n",
        [
            "5:5: error: unknown step 'renam', did you mean 'rename'? [invalid]",
            "6:13: error: no such overload: int + string, expected two of one type: string(...) makes text of a number [type]",
            '8:13: error: no field "x" here: drop in line 7 removes it [unknown-field]',
        ],
    ),
    "a variable that is not set": (
        HEAD + "kafka: {bootstrap.servers: '${NOWHERE}'}\n",
        [
            "4:29: warning: the environment variable NOWHERE is not set, expected it, or a default: ${NOWHERE:-...} [unset-variable]",
        ],
    ),
    "a field that keep removed": (
        STEPS + "  - keep: [user, amount]\n  - filter: amont > 1\n",
        ['6:13: error: no field "amont" here: keep in line 5 does not keep it, did you mean "amount"? [unknown-field]'],
    ),
    "a nested field that keep removed": (
        STEPS + "  - keep: [user.name]\n  - filter: user.name == user.mail\n",
        ['6:26: error: no field "user.mail" here: keep in line 5 does not keep it [unknown-field]'],
    ),
    "fields that drop and rename removed": (
        STEPS + "  - drop: [a.x]\n  - rename: {b: c}\n  - set: {d: a.y + a.x + b + c}\n",
        [
            '7:20: error: no field "a.x" here: drop in line 5 removes it [unknown-field]',
            '7:26: error: no field "b" here: rename in line 6 gives it another name [unknown-field]',
        ],
    ),
    "a rename of what is not there": (
        STEPS + "  - keep: [a]\n  - rename: {b: c}\n",
        ['6:14: error: no field "b" here: keep in line 5 does not keep it [unknown-field]'],
    ),
    "asking for what is never there": (
        STEPS + "  - keep: [a]\n  - filter: '!has(this.b) || b == a'\n  - drop: [c]\n  - cast: {d: int}\n",
        [
            '6:15: warning: there is never a field "b" here: keep in line 5 does not keep it [unknown-field]',
            '7:12: warning: there is never a field "c" here: keep in line 5 does not keep it [unknown-field]',
            '8:12: warning: there is never a field "d" here: keep in line 5 does not keep it [unknown-field]',
        ],
    ),
    "a field that comes back": (STEPS + "  - drop: [a]\n  - set: {a: b}\n  - filter: a == 1\n", []),
    "a macro's variable is no field": (STEPS + "  - keep: [a]\n  - filter: a.all(b, b > 1)\n", []),
    "after python anything may be there": (
        STEPS + "  - keep: [name]\n  - python: transforms.steps.example:with_initials\n  - filter: initials == 'AL'\n",
        [],
    ),
    "a default fills what is gone": (STEPS + "  - keep: [a]\n  - default: {b: a, c: b}\n  - filter: c == 1\n", []),
    "explode's fields": (
        STEPS
        + "  - explode: {field: list, into: item, index: nr}\n  - filter: nr == 'x' || list == 1 || item.x == 1\n",
        [
            "6:13: warning: always false: a int never equals a string [constant]",
            "6:26: error: no field \"list\" here: explode in line 5 puts its elements into 'item' [unknown-field]",
        ],
    ),
    "value goes into an object": (
        STEPS + "  - keep: [a.b]\n  - value: a\n  - filter: c == b\n",
        ['7:13: error: no field "c" here: keep in line 5 does not keep it [unknown-field]'],
    ),
    "value makes an object": (
        STEPS + "  - value: \"{'id': a, 'text': this}\"\n  - filter: id == 1 && txt == text.x\n",
        ['6:24: error: no field "txt" here: value in line 5 does not make it, did you mean "text"? [unknown-field]'],
    ),
    "text has no fields": (
        HEAD.replace("[in]", "[in], format: string").replace("out", "out, format: string")
        + "steps:\n  - filter: size(this) > 1 && a == 1\n",
        ['5:31: error: no field "a" here: the format of the source is string [unknown-field]'],
    ),
    "types after cast and set": (
        STEPS
        + "  - cast: {a: int, t: string}\n  - set: {b: string(a), c: a + 1}\n  - filter: b > a || a == null || t == 1 || c.x == 1\n",
        [
            "7:13: error: no such overload: string > int, expected string > string [type]",
            "7:35: warning: always false: a string never equals a int [constant]",
            "7:45: error: the field 'x' of a int, expected a map [type]",
        ],
    ),
    "conditions that types decide": (
        STEPS + "  - cast: {a: int}\n  - filter: 'a == \"x\" && b'\n  - assert: {that: partition == 'x' || this == 5}\n"
        "  - tombstone: a != 'x'\n  - route: [{when: partition == 'x', to: q}, {when: offset != 'x', to: r}, {when: b, to: s}]\n",
        [
            "6:14: error: the condition is never true, as a int never equals a string: nothing gets past this step [never-matches]",
            "7:5: error: no record gets here: the condition of filter in line 6 is never true [unreachable]",
            "7:20: error: the condition is never true, as a int never equals a string: nothing gets past this step [never-matches]",
            "8:5: error: no record gets here: the condition of assert in line 7 is never true [unreachable]",
            "8:16: error: the condition is always true, as a int never equals a string: nothing gets past this step [never-matches]",
            "9:5: error: no record gets here: the condition of tombstone in line 8 is always true [unreachable]",
            "9:20: error: the condition is never true, as a int never equals a string [unreachable]",
            "9:53: warning: always true: a int never equals a string [constant]",
            "9:76: error: no record gets to this route: the one in line 9 takes all [unreachable]",
        ],
    ),
    "a comparison that does nothing": (
        STEPS + "  - filter: offset != 'x'\n  - route_all: [{when: partition == 'x', to: q}]\n",
        [
            "5:13: warning: always true: a int never equals a string [constant]",
            "6:24: error: the condition is never true, as a int never equals a string [unreachable]",
        ],
    ),
    "a topic that is not read": (
        HEAD.replace("[in]", "[in, in2]")
        + "steps:\n  - filter: topic == 'in' || topic == 'in2'\n  - filter: topic == 'other'\n",
        [
            "5:13: warning: the condition is always true for the records that get here: the step does nothing [constant]",
            "6:13: error: the condition is never true for the records that get here: nothing gets past this step [never-matches]",
        ],
    ),
    "a topic from elsewhere": (
        HEAD.replace("[in]", "['${T:-in}']") + "steps:\n  - filter: topic == 'other'\n",
        [],
    ),
    "types of the key": (
        STEPS + "  - filter: key == 5\n  - filter: key > 5\n",
        [
            "5:13: error: the condition is never true, as a string never equals a int: nothing gets past this step [never-matches]",
            "6:5: error: no record gets here: the condition of filter in line 5 is never true [unreachable]",
            "6:13: error: no such overload: string > int, expected string > string [type]",
        ],
    ),
    "a key of JSON": (HEAD.replace("[in]", "[in], key_format: json") + "steps:\n  - filter: key > 5\n", []),
    "a key of bytes": (
        HEAD.replace("[in]", "[in], key_format: bytes") + "steps:\n  - filter: key > 'a'\n",
        ["5:13: error: no such overload: bytes > string, expected bytes > bytes [type]"],
    ),
    "text is no number": (
        HEAD.replace("[in]", "[in], format: string").replace("out", "out, format: string")
        + "steps:\n  - filter: this > 5 || has(this.a)\n",
        [
            "5:13: error: no such overload: string > int, expected string > string [type]",
            '5:25: warning: there is never a field "a" here: the format of the source is string [unknown-field]',
        ],
    ),
    "formats by topic": (
        HEAD.replace("[in]", "[in, t], format: {t: string}") + "steps:\n  - filter: this == 'x' || this > 5\n",
        [],
    ),
    "a value that is no object": (
        STEPS + "  - value: '5'\n  - filter: a == this\n  - set: {a: '1'}\n  - filter: a == 1 || this == 5\n",
        [
            '6:13: error: no field "a" here: value in line 5 makes the value a int [unknown-field]',
            "7:5: error: set needs an object, but value in line 5 makes it a int [type]",
            "8:13: warning: the condition is always true for the records that get here: the step does nothing [constant]",
            "8:23: warning: always false: a map never equals a int [constant]",
        ],
    ),
    "a value that may be an object": (
        STEPS + "  - value: a\n  - set: {b: '1'}\n  - value: '{}'\n  - set: {b: '1'}\n",
        [],
    ),
    "a value that the sink cannot hold": (
        HEAD.replace("out", "out, format: string")
        + "steps:\n  - value: \"5\"\n  - route: [{when: key == 'a', to: x, format: bytes}, {when: key == 'b', to: y}]\n",
        [
            "3:28: error: out has the format string, but value in line 5 makes the value a int, expected a string [type]",
            "6:47: error: x has the format bytes, but value in line 5 makes the value a int, expected a string [type]",
        ],
    ),
    "no room for a field": (
        STEPS
        + "  - set: {a: '1', a.b: '2', o: '{}', o.x: '1'}\n  - rename: {x: o.x.y, y: n.c}\n  - default: {o.x.y.z: '1', l.m: '[]'}\n"
        + "  - explode: {field: l.m, into: l.m.i, index: o.x.y.n}\n  - cast: {d: int}\n  - set: {d.e: '1', d.e.f: '2'}\n"
        + "  - validate: {schema: {properties: {v: {type: integer}}}}\n  - set: {v.w: '1'}\n",
        [
            '5:19: error: no room for the field "a.b": "a" is a int here, expected an object [type]',
            '6:17: error: no room for the field "o.x.y": "o.x" is a int here, expected an object [type]',
            '10:21: error: no room for the field "d.e.f": "d.e" is a int here, expected an object [type]',
        ],
    ),
    "keywords of a schema": (
        STEPS
        + "  - validate: {schema: {typ: string, requird: [a], x-y: 1, enum: [{typ: 1}], allOf: [{nullable: true}],\n"
        + "      properties: {type: {typ: object}, typ: true}, $defs: {d: {prefixItems: [{typ: 1}]}, e: {items: {typ: 1}}}}}\n",
        [
            "5:25: warning: 'typ' is no keyword of JSON Schema, and checks nothing, did you mean 'type'? [unknown-keyword]",
            "5:38: warning: 'requird' is no keyword of JSON Schema, and checks nothing, did you mean 'required'? [unknown-keyword]",
            "5:87: warning: 'nullable' is no keyword of JSON Schema, and checks nothing [unknown-keyword]",
            "6:27: warning: 'typ' is no keyword of JSON Schema, and checks nothing, did you mean 'type'? [unknown-keyword]",
            "6:80: warning: 'typ' is no keyword of JSON Schema, and checks nothing, did you mean 'type'? [unknown-keyword]",
            "6:103: warning: 'typ' is no keyword of JSON Schema, and checks nothing, did you mean 'type'? [unknown-keyword]",
        ],
    ),
    "nearly metadata": (
        STEPS + "  - keep: [ofset, a]\n  - set: {b: 'tpoic', c: header, d: ofset, e: this.partiton}\n",
        [
            '6:15: error: no field "tpoic" here: keep in line 5 does not keep it [unknown-field]',
            '6:26: error: no field "header" here: keep in line 5 does not keep it [unknown-field]',
            '6:47: error: no field "partiton" here: keep in line 5 does not keep it [unknown-field]',
        ],
    ),
    "nearly metadata, of what is not known": (
        STEPS + "  - filter: tpoic == 'a' && this.ofset > 1 && keys == topics\n",
        [
            "5:13: warning: \"tpoic\" is a field of the value, did you mean 'topic'? If not, write this.tpoic [unknown-field]"
        ],
    ),
    "dead letters of tests": (
        STEPS
        + "  - filter: a\ntests:\n  - {name: a, input: {raw: x}, dead_letter: {error_class: celerror, step: filtr}}\n"
        + "  - {name: b, inputs: [{raw: x}], dead_letter: [{error_class: ValueError}, {step: 'steps[0] filter'}, {step: encode}]}\n"
        + "  - {name: c, input: {raw: x}, dead_letter: [{step: decode}, {step: set, error_class: Nothing}]}\n",
        [
            "7:59: warning: no dead letter has the class 'celerror', did you mean 'CelError'? [test-dead-letter]",
            "7:75: error: no step of the pipeline is 'filtr', did you mean 'filter'? [test-dead-letter]",
            "9:69: error: no step of the pipeline is 'set', expected decode or filter or encode [test-dead-letter]",
            "9:87: warning: no dead letter has the class 'Nothing' [test-dead-letter]",
        ],
    ),
    "not a condition": (
        STEPS + "  - set: {a: size(b)}\n  - filter: a\n  - filter: '!(size(c) + 1) && b'\n",
        [
            "6:13: error: the expression gives int, expected bool [type]",
            "7:14: error: no such overload: !int, expected a bool [type]",
        ],
    ),
    "numbers of two types": (
        STEPS + "  - filter: double(a) * 100 > 5.0\n",
        [
            "5:13: error: no such overload: double * int, expected two of one type: write int(...) or double(...) around one of them [type]"
        ],
    ),
    "types of functions": (
        STEPS
        + "  - filter: size(1) > 1\n  - filter: a.contains(1) || a.size() > 'x'\n  - filter: a.lowerAscii() > 1\n"
        + "  - filter: a.exists(x, 5) && 5.map(x, x) == []\n  - filter: cel.bind(q, 'a', q - 1) == dyn(1)\n"
        + "  - filter: timestamp + a.getHours() > 1\n  - set: {b: 'a.matches(\"(\")', c: a.contains()}\n",
        [
            "5:13: error: no such overload: size(int), expected size(string or bytes or list or map) [type]",
            "6:15: error: no such overload: contains(dyn, int), expected contains(dyn, string) [type]",
            "6:30: error: no such overload: int > string, expected int > int or uint or double [type]",
            "7:13: error: no such overload: string > int, expected string > string [type]",
            "8:25: error: found int, expected bool [type]",
            "8:31: error: a macro over a int, expected a list or a map [type]",
            "9:30: error: no such overload: string - int, expected int - int [type]",
            "10:13: error: no such overload: timestamp + int, expected timestamp + duration [type]",
            "11:25: error: '(' is not a regular expression, expected RE2 syntax [invalid]",
            "11:37: error: contains got 1 arguments, expected 2 (a receiver counts) [invalid]",
        ],
    ),
    "types of what is stored": (
        STEPS
        + "  - set: {t: timestamp(a), u: uint(a), b: bytes(a), d: duration(a)}\n"
        + "  - filter: t.startsWith('2024') && u + 1 > 2 && b.endsWith('=') && d == '3600s'\n"
        + "  - filter: t > timestamp(a)\n",
        ["7:13: error: no such overload: string > timestamp, expected string > string [type]"],
    ),
    "types of optionals": (
        STEPS
        + "  - cast: {a: int, m.a: int}\n  - filter: this.?m.a.orValue(1) == 1 && this.?l[0].hasValue() && m[?'a'].hasValue()\n"
        + "  - filter: this.?a > 1 || a.orValue(1) == 1\n",
        [
            "7:13: error: no such overload: optional > int, expected int or uint or double > int [type]",
            "7:30: error: no such overload: orValue(int, int), expected orValue(optional, int) [type]",
        ],
    ),
    "types of a schema": (
        STEPS
        + "  - validate: {schema: {type: object, required: [id], additionalProperties: false, properties: {id: {type: string},"
        + " n: {type: integer}, o: {type: [string, 'null']}, c: {properties: {l: {type: array}}}}}}\n"
        + "  - filter: id > 1 || n + 'x' == id || o == 1 || c.l.x == 1 || idd == 1\n"
        + "  - filter: n + 1 > 2 && n * 1.5 > 2.0 && o == null && c.l[0] == 1 && id.startsWith('a') && c.m\n",
        [
            "6:13: error: no such overload: string > int, expected string > string [type]",
            "6:23: error: no such overload: number + string, expected two of one type: string(...) makes text of a number [type]",
            "6:40: warning: always false: a string never equals a int [constant]",
            "6:50: error: the field 'x' of a list, expected a map [type]",
            '6:64: error: no field "idd" here: validate in line 5 allows no others, did you mean "id"? [unknown-field]',
        ],
    ),
    "schemas that say less": (
        STEPS
        + "  - validate: {schema: {$ref: '#/$defs/d', $defs: {d: {}}, properties: {a: {type: string}}}}\n"
        + "  - validate: {schema: {additionalProperties: false,"
        + " patternProperties: {x: true}, properties: {b: {type: [string, integer]}}}}\n"
        + "  - filter: a > 1 && b > 1 && x\n",
        [],
    ),
    "constants that fail": (
        STEPS
        + "  - filter: created > duration('1 h')\n  - filter: a || 1 / 0 > 1\n  - filter: \"false ? 1 / 0 > 1 : a\"\n"
        + '  - set: {x: \'{"a": b, "a": 1}\', y: 9223372036854775807 + 1, z: \'a ? b : int("x")\'}\n',
        [
            "5:23: error: fails for every record: the string is not a duration, expected for example 1h30m, 1.5s or 250ms [always-fails]",
            "6:18: warning: this part always fails: division by zero [constant]",
            "8:15: error: fails for every record: repeated key in a map [always-fails]",
            "8:37: error: fails for every record: integer overflow [always-fails]",
            "8:74: warning: this part always fails: the string is not an int [constant]",
        ],
    ),
    "a constant condition": (
        STEPS
        + "  - filter: 1 < 2\n  - assert: {that: 'true'}\n  - tombstone: false\n  - filter: 2 < 1\n  - drop: [a]\n",
        [
            "5:13: warning: the condition is always true: the step does nothing [constant]",
            "6:21: warning: the condition is always true: the step does nothing [constant]",
            "7:16: warning: the condition is never true: the step does nothing [constant]",
            "8:13: error: the condition is never true: nothing gets past this step [never-matches]",
            "9:5: error: no record gets here: the condition of filter in line 8 is never true [unreachable]",
        ],
    ),
    "a condition that contradicts itself": (
        STEPS + "  - filter: a == 1 && a == 2\n",
        ["5:13: error: the condition is never true: nothing gets past this step [never-matches]"],
    ),
    "a condition that contradicts another": (
        STEPS + '  - filter: status in ["a", "b"]\n  - filter: status == "c"\n',
        [
            "6:13: error: the condition is never true for the records that get here: nothing gets past this step [never-matches]"
        ],
    ),
    "a condition on a field that has changed": (
        STEPS + "  - filter: a == 1\n  - set: {a: b}\n  - filter: a == 2\n",
        [],
    ),
    "a condition on a field that is set": (
        STEPS + "  - set: {a: 1}\n  - filter: a == 2\n",
        [
            "6:13: error: the condition is never true for the records that get here: nothing gets past this step [never-matches]"
        ],
    ),
    "a field that holds the JSON form of what it is set to": (
        STEPS
        + "  - set: {t: 'timestamp(\"2024-01-01T00:00:00Z\")', d: 'duration(\"1h\")', b: 'b\"xyz\"', u: 5u}\n"
        + "  - filter: t == '2024-01-01T00:00:00Z' && d == '3600s' && b == 'eHl6' && u == 5.0\n"
        + "  - route: [{when: \"d == '1h'\", to: x}, {when: c, to: y}]\n",
        [
            "6:13: warning: the condition is always true for the records that get here: the step does nothing [constant]",
            "7:21: error: the condition is never true for the records that get here [unreachable]",
        ],
    ),
    "numbers beyond 2^53, of which two may equal a third": (
        STEPS
        + "  - set: {a: 9223372036854775807}\n  - filter: a == 9223372036854775807.0 && a >= 9223372036854775808.0\n"
        + "  - filter: e == 9007199254740993\n  - filter: e == 9007199254740992.0 && e in [9007199254740992.0]\n"
        + "  - filter: '!(f == 9007199254740992)'\n  - filter: f == 9007199254740992.0\n",
        [],
    ),
    "numbers below 2^53": (
        STEPS + "  - filter: e == 9007199254740991\n  - filter: e > 9007199254740990.0 && e == 9007199254740991.0\n",
        ["6:13: warning: the condition is always true for the records that get here: the step does nothing [constant]"],
    ),
    "an int and a double divide differently": (
        STEPS + "  - filter: '!(a / 2 == 2)'\n  - filter: a / 2.0 == 2.0 || a / 2.0 == 2\n",
        [],
    ),
    "ranges": (
        STEPS + "  - filter: a > 10\n  - filter: a < 5.0\n",
        [
            "6:13: error: the condition is never true for the records that get here: nothing gets past this step [never-matches]"
        ],
    ),
    "routes": (
        HEAD
        + "steps:\n  - filter: a in [1, 2, 3]\n  - route:\n"
        + "\n".join(
            f"      - {{when: '{when}', to: {to}}}"
            for when, to in [("a == 1", "x"), ("a == 1", "y"), ("a == 9", "z"), ("a == 2 || a == 3", "v"), ("b", "w")]
        ),
        [
            "8:17: error: the condition is never true for the records that get here [unreachable]",
            "9:17: error: the condition is never true for the records that get here [unreachable]",
            "10:17: warning: the condition is always true for the records that get here: leave it out [constant]",
            "11:9: error: no record gets to this route: the one in line 10 takes all [unreachable]",
        ],
    ),
    "a route that takes all": (
        STEPS + "  - route: [{when: true, to: x}]\n",
        [
            "3:7: warning: no record gets to the sink: the route in line 5 takes all [unused]",
            "5:20: warning: the condition is always true: leave it out [constant]",
        ],
    ),
    "a sink behind a default": (
        STEPS + "  - route: [{when: a, to: x}, {to: y}]\n",
        ["3:7: warning: no record goes to the sink: the last route takes what is left, to y [unused]"],
    ),
    "routes to all": (
        STEPS + "  - filter: a == 1\n  - route_all: [{when: a == 1, to: x}, {when: a == 2, to: y}]\n",
        ["6:47: error: the condition is never true for the records that get here [unreachable]"],
    ),
    "values that nobody reads": (
        STEPS + "  - set: {a: x, b: x, c: x}\n  - set: {a: y}\n  - drop: [b]\n  - filter: c\n  - keep: [a]\n",
        [
            '5:11: warning: the value of "a" is never used: set in line 6 discards it [unused]',
            '5:17: warning: the value of "b" is never used: drop in line 7 discards it [unused]',
        ],
    ),
    "tests": (
        HEAD
        + "tests:\n  - {name: t, input: {topic: other, value: 1}, filtered: true}\n"
        + "  - {name: t, input: {value: 1}, outputs: [{topic: elsewhere, value: 1}]}\n",
        [
            "5:30: error: other is no source topic, expected in [test-topic]",
            "6:12: warning: a second test of the name 't', expected another name [duplicate-test]",
            "6:52: error: no output can go to elsewhere, expected out [test-topic]",
        ],
    ),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_findings(tmp_path: Path, text: str, expected: list[str]) -> None:
    """Each mistake, and nothing else."""
    found = lint(tmp_path, text)
    # Loading itself says only that the test of a condition failed; that is tested where it belongs.
    assert expected == found


def test_keywords_of_a_schema_in_a_file(tmp_path: Path) -> None:
    """The file's name is where they are told, with the path in it."""
    (tmp_path / "s.json").write_text('{"properties": {"a": {"typ": "boolean"}}}')
    assert lint(tmp_path, STEPS + "  - validate: {file: s.json}\n") == [
        "5:22: warning: properties/a/typ: 'typ' is no keyword of JSON Schema, and checks nothing, did you mean 'type'? [unknown-keyword]"
    ]


def test_loops_and_names_across_files(tmp_path: Path) -> None:
    """Pipelines that feed each other in a circle, and two of one name, are found where files are linted together."""
    texts = {
        "a": "name: a\nsource: {topics: [t1]}\nsink: {topic: t2}\n",
        "b": "name: b\nsource: {pattern: '^t2$'}\nsink: {topic: t3}\n",
        "c": "name: c\nsource: {topics: [t3]}\nsink: {topic: t1}\n",
        "d": "name: a\nsource: {topics: [t9]}\nsink: {topic: t8}\n",
    }
    files = []
    for name, text in texts.items():
        files.append(tmp_path / f"{name}.yaml")
        files[-1].write_text(text)
    found = [str(finding).removeprefix(f"{tmp_path}/") for finding in lint_files(files, {})]
    assert [
        "a.yaml:2:9: warning: records go round in a circle of pipelines: a -> b -> c -> a [loop]",
        f"d.yaml:1:7: error: {files[0]} has this name too: they would share a consumer group and fence each other [duplicate-name]",
    ] == found


def test_a_sink_that_is_a_source(tmp_path: Path) -> None:
    """A loop of one pipeline does not load; lint says so with its place."""
    assert lint(tmp_path, "name: p\nsource: {topics: [in]}\nsink: {topic: in}\n") == [
        "3:15: error: the sink is also a source topic, a loop, expected another topic [invalid]",
    ]


def test_tests_beside_the_pipeline(tmp_path: Path) -> None:
    """A file of tests is linted for itself, and against its pipeline."""
    tests = tmp_path / "p.tests.yaml"
    tests.write_text("tests:\n  - {name: a, input: {value: 1}, outputs: [{topic: nowhere, value: 1}]}\n")
    (tmp_path / "p.yaml").write_text(HEAD)
    expected = [f"{tests}:2:52: error: no output can go to nowhere, expected out [test-topic]"]
    assert expected == list(map(str, lint_files([tmp_path / "p.yaml", tests], {})))
    tests.write_text("tests:\n  - {nam: a, input: {valu: 1}}\n")
    assert [
        f"{tests}:2:5: error: the key 'name' of 'tests' is missing, expected it [invalid]",
        f"{tests}:2:6: error: unknown key 'nam', did you mean 'name'? [invalid]",
        f"{tests}:2:22: error: unknown key 'valu', did you mean 'value'? [invalid]",
    ] == list(map(str, lint_files([tests], {})))


def test_an_unreadable_file(tmp_path: Path) -> None:
    [finding] = lint_files([tmp_path / "none.yaml"], {})
    assert (finding.severity, finding.rule, finding.line, finding.column) == ("error", "unreadable", 1, 1)


def test_the_pipelines_of_this_repository() -> None:
    """Nothing is said about them."""
    files = sorted(Path("config/pipelines").rglob("*.yaml"))
    assert len(files) >= 5
    assert lint_files(files, {}) == []


# What lint says is true: random pipelines, and all records of a small world.

_VALUES: list[Any] = [None, True, False, 0, 1, 2, 1.0, 2.5, "x", "y", [1]]
_EDGE = 2**53


@dataclass(frozen=True)
class World:
    """All records that there are, and the literals of conditions on them."""

    records: list[dict[str, Any]]
    numbers: list[str]
    others: list[str]

    @property
    def literals(self) -> list[str]:
        return [*self.numbers, *self.others]


_SMALL_WORLD = World(
    [
        {name: value for name, value in (("a", a), ("b", b)) if value != "missing"}
        for a, b in product([*_VALUES, "missing"], [*_VALUES[:7], "missing"])
    ],
    ["1", "2", "1.0", "0"],
    ['"x"', '"in"', "true", "null"],
)
_EDGE_WORLD = World(
    [
        {"a": a, "b": b}
        for a, b in product(
            [kind(_EDGE + d) for d in (-1, 0, 1, 2) for kind in (int, float)],
            [5, _EDGE + 1, 2**63 - 1, 2.0**63, "3600s"],
        )
    ],
    [
        *(str(_EDGE + d) for d in (-1, 0, 1)),
        *(f"{_EDGE + d}.0" for d in (-1, 0)),
        *("9223372036854775807", "9223372036854775808.0", "5u", "5"),
    ],
    ['duration("1h")', '"3600s"', 'b"x"'],
)


def _condition(rng: random.Random, world: World, depth: int = 0) -> str:
    if depth < 2 and rng.random() < 0.45:
        left, right = _condition(rng, world, depth + 1), _condition(rng, world, depth + 1)
        return f"!({left})" if rng.random() < 0.2 else f"({left} {rng.choice(['&&', '||'])} {right})"
    name = rng.choice(["a", "a", "a", "b", "b", "b", "topic", "partition", "key", "this"])
    match rng.randrange(4):
        case 0:
            return f"{name} {rng.choice(['==', '!='])} {rng.choice(world.literals)}"
        case 1:
            return f"{name} {rng.choice(['<', '<=', '>', '>='])} {rng.choice(world.numbers)}"
        case 2:
            return f"{name} in [{', '.join(rng.sample(world.literals, rng.randrange(1, 4)))}]"
    return f"{rng.choice(world.numbers)} {rng.choice(['<', '==', '>='])} {name}"


def _step(rng: random.Random, world: World) -> dict[str, Any]:
    kinds: list[dict[str, Any]] = [
        {"filter": _condition(rng, world)},
        {"filter": _condition(rng, world)},
        {"assert": {"that": _condition(rng, world)}},
        {"tombstone": _condition(rng, world)},
        {"set": {rng.choice("ab"): rng.choice([*world.literals, "a", "b"])}},
        {"rename": {rng.choice("ab"): rng.choice("abc")}},
        {"keep": rng.sample("abc", 2)},
        {"drop": [rng.choice("abc")]},
        {"cast": {rng.choice("ab"): rng.choice(["int", "string", "bool", "double"])}},
        {"default": {rng.choice("ab"): rng.choice(world.literals)}},
        {"default": {rng.choice(["a.c", "b.c"]): rng.choice(world.literals)}},
        {"set": {rng.choice(["a", "b", "b.c"]): rng.choice([*world.literals, "a"]), "a.c": "1"}},
        {"value": rng.choice([*world.literals, "a", "this", "{'a': 1}"])},
    ]
    return rng.choice(kinds)


def _outcome(spec: Pipeline, count: int, world: World) -> tuple[int, int, dict[str, int]]:
    """(values, failures, values per topic) of the world behind the first steps."""
    update: dict[str, Any] = {"steps": spec.steps[:count]}
    result = compile_pipeline(spec.model_copy(update=update)).run(
        iter([Record(encoded(r, text_as_is=False)) for r in world.records])
    )
    alive = [output for output in result.outputs if output[1] is not None]
    return len(alive), len(result.failures), {t: sum(o[0] == t for o in alive) for t in "xyz"}


def _refuted(spec: Pipeline, findings: list[Finding], world: World) -> list[str]:
    """The findings about conditions that a record of the world refutes. The first step stands in line 5."""
    wrong = []
    for finding in findings:
        index = min(finding.line - 5, len(spec.steps) - 1)
        before, after = _outcome(spec, index, world), _outcome(spec, index + 1, world)
        true = True
        if finding.rule == "never-matches" or "no room" in finding.message or "needs an object" in finding.message:
            true = after[0] == 0
        elif finding.rule == "constant" and "does nothing" in finding.message:
            true = before[0] == after[0] + after[1] - before[1]
        elif finding.rule == "unreachable" and "the condition" in finding.message and index == len(spec.steps) - 1:
            true = after[2]["xyz"[finding.line - 5 - len(spec.steps)]] == 0
        if not true:
            wrong.append(str(finding))
    return wrong


def _one_line(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=10**6).strip()


@pytest.mark.parametrize(
    ("world", "count", "at_least"), [(_SMALL_WORLD, 300, 10), (_EDGE_WORLD, 100, 1)], ids=["small", "edge"]
)
def test_what_is_said_about_conditions_is_true(tmp_path: Path, world: World, count: int, at_least: int) -> None:
    """No record of a small world passes what never matches, or is stopped by what always does; nor of one around 2^53, where ints
    are rounded when they are compared with doubles.
    """
    rng = random.Random(5)
    file = tmp_path / "p.yaml"
    said = Counter[str]()
    for _ in range(count):
        lines = [f"  - {_one_line(_step(rng, world))}" for _ in range(rng.randrange(1, 4))]
        routes = [f"     - {_one_line({'when': _condition(rng, world), 'to': topic})}" for topic in "xyz"]
        file.write_text(STEPS + "\n".join([*lines, "  - route:", *routes]))
        findings = lint_files([file], {})
        said.update(finding.rule for finding in findings)
        assert _refuted(load_pipeline(file, {}).spec, findings, world) == [], file.read_text()
    assert min(said["never-matches"], said["constant"], said["unreachable"], said["type"]) >= at_least
