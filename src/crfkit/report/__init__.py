"""What a person looks at: predictions and trees, as pictures and as text."""

from crfkit.report.prediction_view import show, show_labels, show_spans, show_trees
from crfkit.report.tree_picture import TreePicture, draw_tree
from crfkit.report.tree_text import arc_lines, tree_text
from crfkit.report.view import View

__all__ = [
    "TreePicture",
    "View",
    "arc_lines",
    "draw_tree",
    "show",
    "show_labels",
    "show_spans",
    "show_trees",
    "tree_text",
]
