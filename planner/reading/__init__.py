"""What people have at hand, read: logs, results, configurations and bills become pieces of scenarios and catalogs.

`source` opens files, `kinds` tells what they are and says what was found, and each further module reads kinds of its
own (docs/decisions/0048-reading.md).
"""
