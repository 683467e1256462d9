"""Command line: ``python -m llm_internals``: trace, chat, tokenize.

Chapter: ``00_one_response``.
Source: Python's documentation, "__main__", section "__main__.py in Python packages".
"""

import sys

from llm_internals.command_line import main

if __name__ == "__main__":
    sys.exit(main())
