"""What the templates of arc features look at, by the numbers that core/trees/arc_features.cpp gives them.

`head` and `dep` are the two words of the arc, `head−1` and `head+1` those beside the head; every feature knows the direction
of the arc, many its distance too. `marker` is the preposition or conjunction that introduces a word.
"""

from types import MappingProxyType


def _table(text: str) -> MappingProxyType[int, str]:
    lines = (line.split(maxsplit=1) for line in text.strip().splitlines())
    return MappingProxyType({int(number): name.strip() for number, name in lines})


ARC_TEMPLATES = _table("""
1 head.lemma, head.upos
2 head.xpos
3 head.form
4 dep.lemma, dep.upos
5 dep.xpos
6 dep.form
10 head.upos, dep.upos
11 head.xpos, dep.xpos
12 head.lemma, dep.xpos
13 head.xpos, dep.lemma
14 head.lemma, dep.lemma
15 head.lemma, head.xpos, dep.xpos
16 head.xpos, dep.lemma, dep.xpos
17 head.form, dep.xpos
18 head.xpos, dep.form
19 head.lemma, dep.upos
20 head.upos, dep.lemma
21 head.suffix, head.upos, dep.suffix, dep.upos
22 dep.marker, dep.upos, head.xpos
23 dep.marker, dep.upos, head.lemma
24 dep.marker, dep.lemma, head.lemma
25 dep.marker, dep.upos, head.marker, head.upos
30 head.xpos, head+1.xpos, dep−1.xpos, dep.xpos
31 head−1.xpos, head.xpos, dep−1.xpos, dep.xpos
32 head.xpos, head+1.xpos, dep.xpos, dep+1.xpos
33 head−1.xpos, head.xpos, dep.xpos, dep+1.xpos
34 head.xpos, dep−1.xpos, dep.xpos
35 head.xpos, dep.xpos, dep+1.xpos
36 head−1.xpos, head.xpos, dep.xpos
37 head.xpos, head+1.xpos, dep.xpos
40 head.upos, head+1.upos, dep−1.upos, dep.upos
41 head−1.upos, head.upos, dep−1.upos, dep.upos
42 head.upos, head+1.upos, dep.upos, dep+1.upos
43 head−1.upos, head.upos, dep.upos, dep+1.upos
44 head.upos, dep.upos, dep+1.upos, dep+2.upos
45 head.upos, dep.upos, dep−1.upos, dep−2.upos
46 head.upos, dep.upos, head+1.upos, head+2.upos
47 head.upos, dep.upos, head−1.upos, head−2.upos
48 head.xpos, dep−1.lemma, dep.xpos
49 head.xpos, dep.xpos, dep+1.lemma
50 head−1.lemma, head.xpos, dep.xpos
51 head.xpos, head+1.lemma, dep.xpos
52 head−1.upos, head.upos, head+1.upos, dep−1.upos, dep.upos, dep+1.upos
60 head.upos, upos between, dep.upos
61 head.xpos, xpos between, dep.xpos
62 head.upos, dep.upos, verbs, punctuation and conjunctions between
63 head.xpos, dep.xpos, verbs and punctuation between
64 head.xpos, dep.xpos, conjunctions between
65 head.upos, dep.lemma, verbs and punctuation between
66 head.upos, dep.upos, first and last words
70 head.upos, head.feats, dep.upos, dep.feats
71 head.upos, dep.upos, dep.feats
72 head.upos, head.feats, dep.upos
73 head.upos, dep.upos, agreement
74 head.upos, dep.upos, morphology of both
80 head.cluster4, dep.cluster4
81 head.cluster6, dep.cluster6
82 head.cluster, dep.cluster
83 head.cluster, dep.upos
84 head.upos, dep.cluster
85 head.cluster6, dep.xpos
86 head.xpos, dep.cluster6
87 head.cluster6, dep.cluster6, dep.marker
90 head.vector, head.upos, dep.upos
91 dep.vector, head.upos, dep.upos
""")
"""What each template of arc features looks at, by its number."""
