"""What a person looks at: trees as pictures and as text."""

from crfkit.report.tree_picture import TreePicture, draw_tree
from crfkit.report.tree_text import arc_lines, tree_text

__all__ = ["TreePicture", "arc_lines", "draw_tree", "tree_text"]
