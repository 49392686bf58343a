"""``python -m frtspec``."""

import sys

from frtspec.cli.main import main

sys.exit(main())
