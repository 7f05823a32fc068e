"""Random expressions on random records: the forms of an expression agree, and nothing but CEL's own errors comes out."""

from __future__ import annotations

import contextlib
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.transforms.cel.evaluate import evaluate
from transforms.cel import Constants, compile_expression
from transforms.errors import CelError, CelSyntaxError

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.sampled_from(["", "a", "3", "2020-01-01T00:00:00Z"])
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
)
RECORDS = st.fixed_dictionaries({}, optional={"a": JSON, "b": JSON, "c": JSON, "d": JSON}) | JSON
BINARY = st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in", "&&", "||"])
LEAVES = """
a;b;this;c.a;c['b'];d[0];1;0;2;2.5;0.0;'a';true;null;7u;-1;['a', 'b'];[1, 2u, 3.0];{'a': 1};{true: a, 1: b};9007199254740993
9223372036854775807;9007199254740992.0;has(c.a);b'x';timestamp(0);duration('1s');int;key;headers;offset;timestamp
this.?a;c[?0];optional.none();[?this.?a, b];{?'a': this.?b};x;y;.x;topic
""".replace("\n", ";").split(";")
UNARY = [
    "!",
    "-",
    "int",
    "double",
    "string",
    "size",
    "bool",
    "uint",
    "bytes",
    "type",
    "dyn",
    "optional.of",
    "optional.ofNonZeroValue",
    "timestamp",
    "math.abs",
]
METHODS = ["contains", "startsWith", "endsWith", "orValue", "or", "matches", "split"]
MACROS = (
    """
all(x, {});exists(x, {});exists_one(x, {});map(x, {});filter(x, {});all(x, y, {});exists(x, y, {});existsOne(y, x, {})
transformList(x, y, {});transformMap(x, y, {});optMap(x, {});optFlatMap(x, {});sortBy(x, {});transformMapEntry(x, y, {{x: {}}})
""".replace("\n", ";")
    .strip(";")
    .split(";")
)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:  # noqa: PLR0911 - one per form
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from([leaf for leaf in LEAVES if leaf]))
    part = expressions(depth - 1)
    match draw(st.integers(0, 9)):
        case 0 | 1 | 2:
            return f"({draw(part)} {draw(BINARY)} {draw(part)})"
        case 3:
            return f"({draw(part)} ? {draw(part)} : {draw(part)})"
        case 4:
            return f"({draw(part)}).{draw(st.sampled_from(METHODS))}({draw(part)})"
        case 5 | 6 | 7:
            return f"({draw(part)}).{draw(st.sampled_from(MACROS)).format(draw(part))}"
        case 8:
            return f"cel.bind({draw(st.sampled_from('xy'))}, {draw(part)}, {draw(part)})"
    return draw(st.sampled_from(UNARY)) + f"({draw(part)})"


LIKELY = {
    "num": "i;j;0;1;2;-1;2.5;f;9223372036854775807;7u;{v};{v}",
    "bool": "t;true;false;has(this.i);has(m.a);{v} == 1;{v} != null",
    "str": "s;'a';'';topic;{v}",
    "list": "l;[1, 2, 3];[];[i, f, s];ls;[{v}]",
    "map": "m;{'a': 1, 'b': i};{};{1: s, true: 2}",
}
GROWN = {
    "num": [
        "({num} + {num})",
        "({num} - {num})",
        "({num} * {num})",
        "({num} / {num})",
        "({num} % {num})",
        "-{num}",
        "size({list})",
        "size({str})",
        "int({num})",
        "double({num})",
        "({bool} ? {num} : {num})",
        "{list}[{num}]",
        "{map}.a",
        "{list}[0]",
        "cel.bind(v, {num}, {num})",
        "this.?i.orValue({num})",
        "{map}[?'a'].optMap(v, {num}).orValue({num})",
        "math.greatest({num}, {num})",
        "uint({num})",
    ],
    "bool": [
        "({num} < {num})",
        "({num} >= {num})",
        "({num} == {num})",
        "({str} != {str})",
        "({list} == {list})",
        "({num} in {list})",
        "({bool} && {bool})",
        "({bool} || {bool})",
        "!{bool}",
        "{list}.all(v, {bool})",
        "{list}.exists(v, {bool})",
        "({str} in {map})",
        "{list}.exists_one(v, {bool})",
        "{list}.all(k, v, {bool})",
        "{map}.exists(k, v, {bool})",
        "({bool} ? {bool} : {bool})",
        "{str}.startsWith({str})",
        "{str}.contains('a')",
        "type({num}) == int",
        "cel.bind(v, {list}, {bool})",
        "({map} == {map})",
    ],
    "str": [
        "({str} + {str})",
        "string({num})",
        "({bool} ? {str} : {str})",
        "ls[0]",
        "string({bool})",
        "cel.bind(v, {str}, {str} + v)",
    ],
    "list": [
        "{list}.map(v, {num})",
        "{list}.filter(v, {bool})",
        "{list}.map(v, {bool}, {str})",
        "({list} + {list})",
        "{map}.map(v, v)",
        "{list}.transformList(k, v, {num})",
        "{list}.sortBy(v, {num})",
        "[{num}, {str}]",
        "[?this.?i, {num}]",
        "{list}.map(v, {list})",
    ],
    "map": [
        "{map}.transformMap(k, v, {num})",
        "{'a': {num}, 'b': {list}}",
        "{{num}: 1}",
        "{?'a': this.?i}",
        "{list}.transformMap(k, v, v)",
    ],
}
PLACE = re.compile(r"\{(num|bool|str|list|map|v)\}")
TYPED = st.fixed_dictionaries(
    {
        "i": st.integers(-3, 3) | st.booleans(),
        "f": st.floats(-2, 2) | st.just(float("nan")),
        "s": st.sampled_from(["", "a", "ab"]),
        "t": st.booleans(),
        "l": st.lists(st.integers(-2, 2), max_size=3) | st.lists(SCALARS, max_size=3),
        "ls": st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=2),
        "m": st.dictionaries(st.sampled_from("ab"), st.integers(0, 2) | SCALARS, max_size=2),
    },
    optional={"j": st.sampled_from([1, 1.0, True, 2**63 - 1, 2**53 + 1])},
)


@st.composite
def likely(draw: st.DrawFn, kind: str = "", depth: int = 4, variable: str = "i") -> str:
    """An expression that has a value more often than not. `variable`: one that is in scope."""
    kind = kind or draw(st.sampled_from(sorted(GROWN)))
    if draw(st.integers(0, 40)) == 0:
        kind = draw(st.sampled_from(sorted(GROWN)))
    leaf = depth == 0 or draw(st.integers(0, 5)) == 0
    form = draw(st.sampled_from(LIKELY[kind].split(";") if leaf else GROWN[kind]))
    inside = "v" if "v, " in form else variable
    return PLACE.sub(lambda place: inside if place[1] == "v" else draw(likely(place[1], depth - 1, inside)), form)


@given(likely(), TYPED)
@settings(max_examples=500, deadline=None)
def test_all_forms_agree_where_values_are_likely(text: str, record: Any) -> None:
    """The same for expressions whose parts mostly fit together, so that few fail early."""
    with contextlib.suppress(CelError, CelSyntaxError):
        evaluate(text, record)


@given(expressions(), RECORDS)
@settings(max_examples=600, deadline=None)
def test_fast_and_folded_forms_agree_with_the_exact_one(text: str, record: Any) -> None:
    """Whatever the expression and the record: same value or same error from all forms, and never another exception."""
    with contextlib.suppress(CelError, CelSyntaxError):
        evaluate(text, record)


SIGNS = st.text(st.sampled_from("ab.?[](){}'\"`\\x1e-+*/%<>=!&|:,u \nrté0"), max_size=30)
WORDS = st.lists(
    st.sampled_from(
        ["a", ".", "map", "(", "x", ",", ")", "[", "]", "?", ":", "1", "'s'", "{", "}", "+", "cel.bind", "has", "in"]
    ),
    max_size=15,
)


@given(SIGNS | WORDS.map("".join) | WORDS.map(" ".join) | st.text(max_size=20))
@settings(max_examples=1_000, deadline=None)
def test_any_text_compiles_to_python_or_is_refused_clearly(text: str) -> None:
    """Nothing but `CelSyntaxError`, whose offset lies within the text; what compiles is Python that Python accepts."""
    compiled = None
    try:
        compiled = compile_expression(text, "any", Constants())
    except CelSyntaxError as error:
        refused = error
    if compiled is None:
        assert 0 <= refused.offset <= len(text)
        assert refused.message
    else:
        compile(compiled.fast, "", "eval")
        compile(compiled.exact, "", "eval")
