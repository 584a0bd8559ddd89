"""What people have at hand, read: logs, results, configurations and bills become pieces of scenarios and catalogs.

`source` opens files, `kinds` and `registry` tell what they are, each further module reads kinds of its own, and
`reading` says what was found (docs/decisions/0048-reading.md).
"""
