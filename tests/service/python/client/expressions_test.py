"""Python's conditions mean the same as expressions of a spec."""

import itertools
import math
import re
import unittest

import cubind
import tuned_here

VALUES = {"x": [1, 2, 3, 4], "y": [1, 2, 4], "T": ["float", "double"], "n": [100]}
SAME = (
    "x*y<=8 and (x>1 or y==4)",
    "x==y or y in (2, 4)",
    "not x>2",
    "x/y==2",
    "x/2 < y*1.5",
    "T=='float' and x<3",
    "T!='float'",
    "T in ('half', 'double')",
    "T == 'half'",
    "1 if x>2 else y>1",
    "n//x % 2==0",
    "(x-3)%2==0",
    "-x//2==-1",
    "7 % x == 1 and 9 // y > 2 and 1 / x > 0.3",
    "x && y > 2 || !(x==1)",
    "x and y > 2 or y == 1",
    "min(x,y)>1 and max(x, y) < 4",
    "ceil(n/(x*y))<40 and floor(n/x) > 30",
    "ceil((x-3)/2) == 0",
    "cdiv(n,x)>=y",
    "2 < x < 4",
    "x",
    "True",
    "int(x/2)==1",
    "2*x+3*y-1>4",
    "n%(x*y)==0 and abs(x-y)<2",
    lambda x, y: x * y > 4,
    lambda p: p["x"] < p["y"] <= 4,
    lambda p: p["x"] if p["y"] > 1 else 0,
)
REFUSED = {
    '"x +" is no expression': "x +",
    "raises NameError: name 'z'": "z > 1",
    "raises NameError: name '__import__'": "__import__('os')",
    "raises TypeError: unhashable": lambda x: {1: 2}[x],
    "raises KeyError: 'q'": lambda p: p["q"],
    "raises ZeroDivisionError": lambda p: 1 / 0,
    "raises TypeError: it returns None": lambda x: None,
    "raises TypeError: the values of T are no integers": "T * 2 > 1",
    "raises TypeError: x is not known yet": lambda x: list(range(x)),
    "may be 0 or negative": "1 / (x - 1) > 2",
    "more than 256 cases": lambda p: all(p["x"] > each for each in range(300) if p["y"] > each),
}


def flat(text):
    """Python for an expression without parentheses."""
    condition, asked, both = text.partition("?")
    then, _, otherwise = both.partition(":")
    return f"({then}) if ({condition}) else ({otherwise})" if asked else text


def evaluated(text, values):
    """As the daemon evaluates a constraint."""
    inner = []
    while found := re.search(r"\(([^()]*)\)", text):
        inner.append(flat(found[1]))
        text = f"{text[: found.start()]}@{len(inner) - 1}@{text[found.end() :]}"
    text = flat(text)
    while found := re.search(r"@(\d+)@", text):
        text = f"{text[: found.start()]}({inner[int(found[1])]}){text[found.end() :]}"
    python = re.sub(r"!(?!=)", " not ", text).replace("&&", " and ").replace("||", " or ").replace("/", "//")
    return bool(eval(python, {"cdiv": lambda top, bottom: -(-top // bottom), "abs": abs}, values))


def expression(given):
    """The constraint that a restriction becomes."""
    chosen = {name: values[0] for name, values in VALUES.items()}
    launch = {"block": [32], "grid": [1], "default": chosen, "writes": ["c"]}
    return tuned_here.definition(tune_params=VALUES, restrictions=[given], **launch).spec["constraints"][-1]


def holds(given, values):
    """What the restriction says of the values as Python."""
    if callable(given):
        return bool(
            given(values) if given.__code__.co_varnames == ("p",) else given(values["x"], values["y"])
        )
    given = re.sub(r"!(?!=)", " not ", given).replace("&&", " and ").replace("||", " or ")
    return bool(eval(given, {**vars(math), "cdiv": lambda top, bottom: math.ceil(top / bottom)}, values))


class Conditions(unittest.TestCase):
    def test_a_condition_holds_where_its_expression_does(self):
        for given in SAME:
            text = expression(given)
            for combination in itertools.product(*VALUES.values()):
                values = dict(zip(VALUES, combination, strict=True))
                numbered = {**values, "T": VALUES["T"].index(values["T"])}
                with self.subTest(given=given, text=text, values=values):
                    self.assertEqual(evaluated(text, numbered), holds(given, values))

    def test_what_cannot_be_an_expression_is_refused_at_its_place(self):
        for told, given in REFUSED.items():
            with (
                self.subTest(told),
                self.assertRaisesRegex(
                    cubind.InvalidArgumentError, r"^restrictions\[0\]: .*" + re.escape(told)
                ),
            ):
                expression(given)

    def test_a_condition_is_said_as_a_person_would(self):
        for given, text in {
            "x > 1 and y > 1": "(x > 1) && (y > 1)",
            "x > 1 or not y": "(x > 1) || (!y)",
            "x * y <= 1024": "(x * y) <= 1024",
            lambda x: math.ceil(x / 4): "cdiv(x, 4)",
        }.items():
            self.assertEqual(expression(given), text)
