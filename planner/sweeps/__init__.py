"""One scenario asked many things, on this machine or on many: questions, where they are answered, what is kept.

question.py says what is asked and under which key its answer is kept, axes.py writes a grid of questions, answering.py
and cluster.py have them worked out and keep answers in a journal, borders.py looks where a decision turns, and
document.py writes it all down. What works an answer out is handed in by `planner.api`.
"""
