"""`python -m lookout.cli`: the program `tack`."""

import sys

from lookout.cli.main import main

sys.exit(main(sys.argv[1:]))
