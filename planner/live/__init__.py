"""A page on this machine that asks one session: knobs, questions that the next change cancels, a guarded server.

knobs.py tells what of a scenario can be turned; desk.py answers questions, one at a time; answer.py shows a plan
document; saving.py writes a scenario; server.py lets in only the page itself. docs/decisions/0053-live-page.md.
"""
