"""Data inside a page stays data."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_internals.html_json import json_for_html

TEXT = st.text() | st.sampled_from(["</script>", "<!--", "]]>", "&lt;", "\u2028"])


@given(st.recursive(TEXT | st.integers() | st.booleans() | st.none(), lambda inner: st.lists(inner, max_size=3)))
def test_what_is_written_reads_back_equal_and_holds_no_mark_up(data):
    text = json_for_html(data)
    assert json.loads(text) == data
    assert not set("<>&") & set(text)


@pytest.mark.parametrize("data", [float("nan"), float("inf"), {1, 2}, b"bytes"])
def test_what_json_has_no_form_for_raises(data):
    with pytest.raises(ValueError, match="plain JSON"):
        json_for_html(data)
