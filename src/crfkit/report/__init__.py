"""What a person looks at: reports on models, predictions and trees, as pages, pictures and text."""

from crfkit.report.page import check_packages
from crfkit.report.prediction_view import show, show_labels, show_spans, show_trees
from crfkit.report.tree_picture import TreePicture, draw_tree
from crfkit.report.tree_text import arc_lines, tree_text
from crfkit.report.view import View
from crfkit.report.writing import write_report

__all__ = [
    "TreePicture",
    "View",
    "arc_lines",
    "check_packages",
    "draw_tree",
    "show",
    "show_labels",
    "show_spans",
    "show_trees",
    "tree_text",
    "write_report",
]
