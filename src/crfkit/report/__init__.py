"""What a person looks at: pictures of trees."""

from crfkit.report.tree_picture import TreePicture, draw_tree

__all__ = ["TreePicture", "draw_tree"]
