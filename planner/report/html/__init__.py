"""A report as one page: tables and figures in one file that needs no network, no server and no other file.

pages.py says what stands where, page_parts.py what all pages are made of; figures stand by what they are of; page.css
and figures.js travel inside the page. Everything is drawn from the report document; nothing here computes physics.
"""
