"""Published equations that no estimate uses: they check those that do, and are held against printed numbers."""
