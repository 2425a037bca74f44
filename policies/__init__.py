"""policies DECIDES: what a failed run is, and what follows from it. Pure Python, no framework, no clock, no I/O.

A run ends and leaves `Signals`. `failures` gives them a category. A `Policy` read by `documents` says what to do about
categories; `decide` applies it to a failure and the failures before it; `growth` works out the memory a retry gets;
`explain` shows every step of a decision and `wording` says it in sentences.

Everything here is a frozen value or a function on values. `scheduler` and `lookout` call in; nothing here calls out: the
imports are the standard library, PyYAML and google-re2.
"""
