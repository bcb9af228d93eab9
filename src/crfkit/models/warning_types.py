"""Categories of the warnings that training gives."""


class TrainingInterrupted(UserWarning):
    """Ctrl-C or SIGTERM ended the training early; the model has the best weights found until then."""


class CheckpointFailed(UserWarning):
    """A checkpoint could not be written, as on a full disk; the training run goes on without it."""


class UnsavableModel(UserWarning):
    """Warned about before training: this model can predict, but no file can hold it."""


class UnusedStart(UserWarning):
    """The model to begin with has few weights that this one has too: training begins nearly from 0."""


class UnknownLabels(UserWarning):
    """Held-out data has labels that the training data does not have: no model can give them."""
