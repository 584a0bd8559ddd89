"""A report as one page: tables and figures in one file that needs no network, no server and no other file.

page.py puts it together; sections.py says what stands where, each figure has a module; page.css and figures.js
travel inside the page. Everything is drawn from the report document; nothing here computes physics.
"""
