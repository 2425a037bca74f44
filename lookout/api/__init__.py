"""REST for programs, and the API of the agents.

An endpoint reads what was sent into a value, calls one verb or one read, and answers with JSON. What travels is
written down as dataclasses: `shapes` turns them into JSON and back, `schema` into OpenAPI, so the description
cannot differ from what is accepted. `errors` gives every refusal one form. REST framework stays in here.
"""
