"""The one YAML entrance: bounded, YAML 1.2 numbers, and every value knows where it stands.

document = read_yaml("scenario.yaml")
document.data                                    plain dict, list, str, int, float, bool, None
document.place("training[0].deadline")           file, line, column, the line itself
"""

from planner.yamlfile.reader import BAD, MAX_BYTES, MAX_DEPTH, MAX_NODES, parse_yaml, read_yaml
from planner.yamlfile.tree import Document, Node, Source, Steps, next_step, path_text

__all__ = [
    "BAD",
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_NODES",
    "Document",
    "Node",
    "Source",
    "Steps",
    "next_step",
    "parse_yaml",
    "path_text",
    "read_yaml",
]
