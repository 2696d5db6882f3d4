"""Data inside a page comes back as it was, and no text in it can become markup."""

import base64
import json

import numpy as np
import pytest

from softspike.report.payload import blocks_of, script_json

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--",
    "]]>",
    "a & b &amp; <b>",
    "\u2028\u2029",
    '"\\',
    "日本 λ 🙂",
    "\x00\x1b",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_survives_and_holds_no_markup(text):
    content = {text: [text, {"n": 1}]}
    written = script_json(content)
    assert json.loads(written) == content
    assert not set("<>&\u2028\u2029") & set(written)


def test_numbers_that_json_lacks_become_null():
    assert json.loads(script_json([float("nan"), float("inf"), 1.5, (1, None), True])) == [
        None,
        None,
        1.5,
        [1, None],
        True,
    ]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16", "int32", "uint32", "float32"])
def test_arrays_come_back(dtype):
    array = np.arange(-3 if dtype[0] in "if" else 0, 9, dtype=dtype).reshape(3, -1)
    (block,) = blocks_of("r0", {"name": array})
    assert block.id == "r0-name"
    assert block.type.lower() == dtype
    back = np.frombuffer(base64.b64decode(block.text), np.dtype(dtype).newbyteorder("<")).reshape(block.shape)
    np.testing.assert_array_equal(back, array)


def test_other_types_are_refused():
    with pytest.raises(KeyError):
        blocks_of("r0", {"x": np.zeros(3)})
