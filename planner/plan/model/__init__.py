"""The types of the plan document: plain JSON at run time, checked by mypy where it is written and by pydantic where a
file of it is read. A text below a key describes it in the JSON Schema."""
