"""The answer: the plan document, its verifier, its reasons.

`rows` what is chosen and what it does; `notes` what is taken for granted; `checks` the parts of the verifier; `why`
reasons, what limits are worth, ways out; `others` different decisions; `frontier` each plan that is best for some
limit; `memory` what `plan memory` answers. Here stay the document, its certificate and what is put beside it.
"""
