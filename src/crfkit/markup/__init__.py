"""Pieces of HTML that notebooks, reports and pages show: escaped text, tables, folded parts, plots, labels in colour.

Everything takes its text colour from where it stands, so that it can be read on light and on dark backgrounds.
"""

from crfkit.markup.html import Html, details, escape, fragment, join, table, tag
from crfkit.markup.label_colours import label_chip, label_hues
from crfkit.markup.line_plot import Line, line_plot

__all__ = [
    "Html",
    "Line",
    "details",
    "escape",
    "fragment",
    "join",
    "label_chip",
    "label_hues",
    "line_plot",
    "table",
    "tag",
]
