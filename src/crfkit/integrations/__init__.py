"""crfkit inside other tools; each module needs the package that it is named after.

spacy    a component of spaCy's pipelines: entities, tags or trees with their probabilities
hub      models as folders of the Hugging Face hub, with a model card
"""
