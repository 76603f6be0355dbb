"""What holds for all tests: decisions about models are not kept, so that each session is made anew; `session/decisions` tests that."""

import os

os.environ["SARDONYX_KEEP_DECISIONS"] = "0"
