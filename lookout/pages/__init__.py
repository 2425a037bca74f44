"""Pages: one module per place, one view and one template and one read per page.

`shell` is what every page shares: who is signed in, what a refusal looks like, and that the part which
refreshes is the part the page was first drawn with. Pages call the reads and verbs of `scheduler`; what they
add is words and pictures.
"""
