"""Pictures for the pages: functions that take arrays and call no stage.

One file a chapter, named after it (`one_response` for ``00_one_response``), and three shared ones: `style` (sizes and
what each colour means), `labels` (how a token is spelt on a figure), `pipeline` (the strip that opens each chapter, and
the picture of the whole way). Hand-written JavaScript for `show.interactive` lives in ``interactive/``.

How a figure gets onto a page
-----------------------------
There is one way, and it is in the code cell, where an author sees it::

    show.figure(
        one_response.next_token(pieces, probs, chosen),
        name="fig-next-token",
        caption="The first token of the answer: the eight likeliest candidates.",
        alt="Bar chart. The stands far ahead of the other seven tokens.",
    )

- The figure function returns a matplotlib `Figure` of a fixed size; it draws nothing on screen and keeps no state.
- ``caption`` is Markdown and says what to see. ``alt`` says in plain words what the picture shows to someone who can't
  see it. ``name`` starts with ``fig-`` and is unique in the book; other text refers to it by
  ``{numref}`fig-next-token```.
- A figure has its code cell to itself, except for text that is printed: a table or a second figure goes into another.
- In JupyterLab the cell shows the picture and, under it, the caption. When the book is built, the Sphinx extension
  ``tools/sphinx_ext/notebook_outputs.py`` turns the two into one numbered figure with its alt text.
- Everything stands in the stored notebook, so a test can check it: the output's data are ``image/png`` and
  ``text/plain`` (the alt text), its metadata ``figure`` holds name, caption and alt.
- Draw for a white page, with a transparent background: in dark mode the page inverts the lightness and keeps the hues.
"""
