# SPDX-License-Identifier: Apache-2.0
"""Parameters as texts: what they are in `headroom batch` and its JSON lines, too."""
import enum
import json
import numbers
import re
from typing import Any, Iterator, Mapping, Tuple

_DEEPEST = 8
_MOST = 1000  # more is data, not parameters

# As of commands and environments, see docs/privacy.md: a value whose name says that it is secret is not written.
_SECRET = re.compile("key|token|secret|pass|credential", re.I)
_HARMLESS = re.compile("token(?:iz|is)|key(?:board|frame|point|stone|word|note)|monkey|"
                       "bypass|compass|pass(?:es|through|age|ive)", re.I)


def is_secret(name: str, text: str) -> bool:
    found = _SECRET.findall(_HARMLESS.sub("", name))
    if not found or text.lower() in ("", "yes", "no", "true", "false", "on", "off", "none", "null"):
        return False
    is_number = len(text) <= 12 and re.fullmatch(r"[-+]?\d+(\.\d+)?", text)
    return not (is_number and all(word.lower() in ("key", "token") for word in found))


def text_of(value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, enum.Enum):
        return text_of(value.value)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, numbers.Number):
        return str(value)
    if isinstance(value, (list, tuple)):
        return json.dumps(value, default=text_of, ensure_ascii=False)
    return str(value)


def flattened(values: Mapping[Any, Any]) -> Iterator[Tuple[str, str]]:
    """Pairs of name and text. What cannot be told as a text is left out."""
    for count, pair in enumerate(_flattened(values, "", 1)):
        if count == _MOST:
            return
        yield pair


def _flattened(values: Mapping[Any, Any], above: str, depth: int) -> Iterator[Tuple[str, str]]:
    for key, value in list(values.items()):
        try:
            name = above + str(key)
            nested = isinstance(value, Mapping) and len(value) > 0 and depth < _DEEPEST
            text = "" if nested else text_of(value)
        except Exception:  # of the value's own code
            continue
        if nested:
            yield from _flattened(value, name + ".", depth + 1)
        elif name:
            yield name, "***" if is_secret(name, text) else text or '""'  # the ring has no empty text
