"""The plan document: what was chosen, what it does and why, in rows and words with types.

`rows` what is chosen and what it does; `notes` what is taken for granted; `certificate` what a bound rests on; `model`
the types of it all.
"""
