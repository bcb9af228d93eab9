"""doccano's auto-labeling by a custom REST request: a text comes in, spans go out.

doccano turns the answer into its own labels by a mapping template (Jinja2). That of `/doccano` has them as they are:

    [
      {% for span in input.spans %}
        {"label": "{{ span.label }}", "start_offset": {{ span.start_offset }}, "end_offset": {{ span.end_offset }}}
        {% if not loop.last %},{% endif %}
      {% endfor %}
    ]
"""

from typing import Any

from crfkit.serve.asking import Asking
from crfkit.serve.errors import bad_value
from crfkit.serve.label_studio import ask_spans


class Doccano:
    """Answers `/doccano`."""

    def __init__(self, asking: Asking) -> None:
        self.asking = asking

    async def label(self, request: dict[str, Any], large: bool = False) -> tuple[Any, int]:
        """The spans of a text: label, and the characters from `start_offset` to `end_offset`, which is not included."""
        text = request.get("text")
        if not isinstance(text, str):
            raise bad_value('text is no string: the body of the request is {"text": "{{ text }}"}')
        version = self.asking.store.get(request.get("model"))
        [spans] = await ask_spans(self.asking, version, [text], large=large)
        return {
            "spans": [
                {
                    "label": str(span["label"]),
                    "start_offset": span["begin_character"],
                    "end_offset": span["end_character"],
                    "probability": span["probability"],
                }
                for span in spans
            ]
        }, 200
