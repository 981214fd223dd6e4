"""`python -m dsms` is the command `dsms`."""

import sys

from dsms.cli import main

sys.exit(main())
