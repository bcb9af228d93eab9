"""Tags of segmentations that are partly unknown, and tags that no segmentation has.

The tag c begins a segment of the label c, c + L continues it, and a negative one is unknown.
"""

import torch
from torch import Tensor

from crfkit.errors import LabelError
from crfkit.nn.problem.segments import SegmentProblem, inside, lengths_of


def agreeing(problem: SegmentProblem, tags: Tensor) -> SegmentProblem:
    """The problem of all segmentations that agree with tags [B, T] by token where these are known.

    A segment that begins at s with the label c agrees if the tag at s may be c, and all others of it may be c + L.
    """
    _, T, K, L = problem.shape
    labels, unknown = torch.arange(L, device=tags.device), (tags < 0)[:, :, None]
    begins = unknown | (tags[:, :, None] == labels)  # [B, T, L]
    broken = (~(unknown | (tags[:, :, None] == labels + L))).long().cumsum(1)
    place = torch.arange(T, device=tags.device)[:, None] + torch.arange(K, device=tags.device)
    ends = place.clamp_max(max(T - 1, 0))  # [T, K]; those beyond the end are no segments
    agree = begins[:, :, None] & (broken[:, ends] == broken[:, :, None])
    given = problem.emissions.new_zeros(()) if problem.segments is None else problem.segments
    return problem._replace(segments=torch.where(agree, given, -torch.inf).contiguous())


def within(problem: SegmentProblem, possible: Tensor) -> SegmentProblem:
    """The problem of all segmentations whose labels are within sets of labels [B, T, L] by token."""
    return problem._replace(emissions=problem.emissions.masked_fill(~possible, -torch.inf))


def has_unknown(problem: SegmentProblem, tags: Tensor) -> bool:
    """Whether a tag [B, T] by token is unknown. Reads the values."""
    return bool(((tags < 0) & inside(problem)).any())


def check_tags(problem: SegmentProblem, tags: Tensor, table: Tensor | None, positions: Tensor | None) -> bool:
    """Whether a tag [B, T] by token is unknown; raises an error for tags that no segmentation has. Reads the values.

    `table` [L + 1, L + 1] are the allowed bigrams, `positions` [B, T] those of the tokens (None: the same).
    """
    _, T, K, L = problem.shape
    if tags.numel() == 0:
        return False
    exists, n = inside(problem), lengths_of(problem)[:, None]
    known = exists & (tags >= 0)
    label = torch.where(known, tags % L, L)
    before = torch.nn.functional.pad(label[:, :-1], (1, 0), value=L)  # L: unknown, or there is none
    place = torch.arange(T, device=tags.device)
    follows = known & (tags >= L)
    run = place - torch.cummax(torch.where(follows, -1, place), 1).values  # of tags that continue, up to each
    wrong = [
        known & (tags >= 2 * L),
        follows & (before != label) & ((before < L) | (place == 0)),
        run >= K,
    ]
    if table is not None:
        # START is the last row, END the last column; unknown neighbours may be allowed
        has_neighbour = (before < L) | (place == 0)
        wrong.append(known & ~follows & has_neighbour & ~table[before, label.clamp_max(L - 1)])
        wrong.append(known & (place == n - 1) & ~table[label, L])
    unknown, *found = torch.stack([(exists & (tags < 0)).any(), *(part.any() for part in wrong)]).tolist()
    for kind, is_there in enumerate(found):
        if is_there:
            b, t = torch.nonzero(wrong[kind])[0].tolist()
            at = t if positions is None else int(positions[b, t])
            raise LabelError(_message(kind, b, at, int(tags[b, t]), int(before[b, t]), K, L))
    return bool(unknown)


def _message(kind: int, b: int, t: int, tag: int, before: int, K: int, L: int) -> str:
    """What is wrong with a tag."""
    after = "label {before}" if before < L else "the begin"
    return (
        f"tags: got the tag {tag} in sequence {b} at position {t}, "
        + (
            f"expected 0 to {2 * L - 1}, or a negative number where it is unknown.",
            f"which continues a segment of label {tag % L}, but none is open there.",
            f"which makes its segment longer than {K} positions, expected at most max_length = {K}.",
            f"but the bigrams forbid label {tag % L} after {after.format(before=before)}.",
            f"but the bigrams forbid label {tag % L} at the end.",
        )[kind]
    )
