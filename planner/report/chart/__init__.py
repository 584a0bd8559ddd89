"""Charts as data, and as SVG that needs no script."""
