"""Checks whether JSON Schema validators accept configuration files.

usage: schema.py SCHEMA FILE...

Prints a line of JSON for each file: {"file", "verdict": "accepts", "refuses" or "unreadable", "errors": [...]}. Values
have the types of YAML 1.2, as in editors: off is a text.
"""

import json
import re
import sys

import jsonschema
import yaml


class CoreLoader(yaml.SafeLoader):
    """The core schema of YAML 1.2; a repeated key is refused, as YAML requires."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        if len(keys) != len(set(keys)):
            raise yaml.constructor.ConstructorError(None, None, "a key is given twice", node.start_mark)
        return super().construct_mapping(node, deep)


CoreLoader.yaml_implicit_resolvers = {}
for tag, pattern, first in [
    ("null", r"^(~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"^(true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^[-+]?[0-9]+$", list("-+0123456789")),
    ("float", r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$", list("-+.0123456789")),
]:
    CoreLoader.add_implicit_resolver("tag:yaml.org,2002:" + tag, re.compile(pattern), first)


def judge(validator, path):
    try:
        with open(path, encoding="utf-8") as file:
            document = yaml.load(file, CoreLoader)
    except yaml.YAMLError as error:
        return {"verdict": "unreadable", "errors": [str(error)]}
    errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]
    return {"verdict": "refuses" if errors else "accepts", "errors": errors}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for path in sys.argv[2:]:
        print(json.dumps({"file": path, **judge(validator, path)}))


main()
