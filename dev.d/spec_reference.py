"""Writes docs/kernel-spec.md, the reference of kernel specs, from the descriptions in their JSON Schema.

    python dev.d/spec_reference.py [--check]

With --check nothing is written; exit status 1 if the page is not what the schema gives. A key without a
description is an error.
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SCHEMA = ROOT / "schemas/kernel_spec.schema.json"
PAGE = ROOT / "docs/kernel-spec.md"
HEAD = """# Kernel specs: reference

Made by `dev.d/spec_reference.py` from `schemas/kernel_spec.schema.json`, which editors use too; `./dev format` makes it again.
[kernels.md](kernels.md) explains how to write a spec. {description}
"""
# Each section is an object of the schema, by its path; the words that point to it in a form.
SECTIONS = [
    ("The file", "", None),
    ("problem", "properties/problem", "problem"),
    ("a dim", "properties/problem/properties/dims/additionalProperties/anyOf/1", None),
    ("a buffer", "definitions/buffer", "buffer"),
    ("a fill", "definitions/fill/anyOf/1", "fill"),
    ("a scalar", "definitions/scalar", "scalar"),
    ("a launch", "definitions/launch", "launch"),
    ("reference", "properties/reference/anyOf/2", None),
    ("tolerance", "definitions/tolerance", "tolerance"),
    ("a bound of a tolerance", "definitions/bound/anyOf/1", "bound"),
    ("work", "properties/work", None),
]
WORDS = ["expression", "type", "name", "path", "axes"]


class Reference:
    def __init__(self, schema):
        self.schema = schema

    def at(self, path):
        node = self.schema
        for step in filter(None, path.split("/")):
            node = node[int(step)] if isinstance(node, list) else node[step]
        return node

    def description(self, node, place):
        """Its own, else that of the definition that it refers to."""
        text = node.get("description")
        if not text and "$ref" in node:
            text = self.at(node["$ref"].removeprefix("#/")).get("description")
        if not text:
            sys.exit(f"{SCHEMA.relative_to(ROOT)}: {place} has no description")
        return text

    def form(self, node):
        """What may stand there, in a few words."""
        if "$ref" in node:
            return node["$ref"].rsplit("/", 1)[1]
        if "enum" in node:
            return " or ".join(f"`{json.dumps(one)}`" for one in node["enum"])
        if "anyOf" in node:
            return " or ".join(dict.fromkeys(self.form(one) for one in node["anyOf"]))
        return self.form_of_type(node, node.get("type", "anything"))

    def form_of_type(self, node, kind):
        if kind == "array":
            count = self.bounds(node, "minItems", "maxItems")
            return f"list of {self.form(node['items'])}{', ' + count if count else ''}"
        if kind == "object" and node.get("additionalProperties"):
            count = self.bounds(node, "minProperties", "maxProperties")
            return f"{{name: {self.form(node['additionalProperties'])}}}{', ' + count if count else ''}"
        name = " or ".join(kind) if isinstance(kind, list) else kind
        return f"{name} {self.bounds(node, 'minimum', 'maximum')}".strip()

    @staticmethod
    def bounds(node, low, high):
        if high in node:
            return f"{node.get(low, 0)} to {node[high]}"
        return f"from {node[low]} on" if low in node else ""

    def section(self, title, path, word):
        node = self.at(path)
        lines = [f"## {title[0].upper() + title[1:]}", ""]
        # The words about a definition with several forms stand beside these.
        owner = self.at(path.rsplit("/anyOf", 1)[0])
        if path and (owner.get("description") or node.get("description")):
            lines += [self.cell(owner.get("description") or node["description"]), ""]
        lines += ["| key | form | meaning |", "|---|---|---|"]
        for key, value in node["properties"].items():
            needed = "**" if key in node.get("required", []) else ""
            meaning = self.cell(self.description(value, f"{path}/properties/{key}"))
            lines.append(f"| {needed}`{key}`{needed} | {self.cell(self.form(value))} | {meaning} |")
        return "\n".join(lines) + "\n"

    @staticmethod
    def cell(text):
        return text.replace("|", "\\|").replace("<", "&lt;")

    def words(self):
        lines = ["## Words", "", "| form | meaning |", "|---|---|"]
        for word in WORDS:
            node = self.at(f"definitions/{word}")
            lines.append(f"| {word} | {self.cell(self.description(node, f'definitions/{word}'))} |")
        return "\n".join(lines) + "\n"

    def page(self):
        head = HEAD.format(description=self.schema["description"] + " Keys in bold must be there.")
        return "\n".join([head, *(self.section(*section) for section in SECTIONS), self.words()])


def main():
    page = Reference(json.loads(SCHEMA.read_text())).page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page)
    elif not PAGE.exists() or PAGE.read_text() != page:
        sys.exit(f"{PAGE.relative_to(ROOT)} is not what the schema gives: ./dev format makes it again")


if __name__ == "__main__":
    main()
