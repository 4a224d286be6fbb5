"""`python -m paceline …` runs `paceline-sidecar …`."""

import sys

from ._command import main

sys.exit(main(sys.argv[1:]))
