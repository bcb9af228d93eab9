"""The interface of a kind of structure: what models, their training and their files ask of it."""

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from crfkit.features import FunctionMap, Labels, MissingResource, Resource, Template
from crfkit.models.chain_model import ChainModel
from crfkit.models.files.crf_file import Contents
from crfkit.models.files.resource_file import Resources
from crfkit.models.potentials import FeaturePotentials, potentials_without_structure
from crfkit.models.training.fingerprint import by_code
from crfkit.models.training.training_set import TrainingInput, TrainingSet, learn_sequences
from crfkit.structures import Chain, Growth, SequenceStructure, SpanLabels

if TYPE_CHECKING:
    from crfkit.models.settings import CRFSettings


class StoredModel(NamedTuple):
    """A model file whose arrays have been checked, and what the reader of the file was given."""

    contents: Contents  # with the encoder as the model has it
    chain: Chain  # of the parameters
    template: Template | None
    functions: FunctionMap | None  # feature functions
    local: bool  # normalised at each position
    resources: Resources  # those given, and those of the file
    given: Any  # the functions that the structure calls, or its class; None: placeholders
    trust: bool  # import what the file names

    @property
    def features(self) -> tuple[Any, Any]:
        """The first arguments of all potentials."""
        return self.contents.encoder, self.contents.feature_map

    @property
    def structure(self) -> dict[str, Any]:
        """The structure as the parameters of the file have it."""
        found: dict[str, Any] = self.contents.settings["parameters"]["structure"]
        return found


class StructureKind:
    """A kind of structure. Where nothing else is said, it is treated as a chain is."""

    structure: ClassVar[type]  # of its specifications
    written: ClassVar[str]  # how a user writes one
    potentials: ClassVar[type[FeaturePotentials] | None] = None  # None: of features, or of feature functions
    model: ClassVar[type[ChainModel]] = ChainModel
    key: ClassVar[str] = ""  # which a file has among its settings, or among those of its structure
    unpack: ClassVar[Callable[..., Any] | None] = (
        None  # reads what potentials pack; see `files.crf_file.unpack`
    )
    named_weights: ClassVar[bool] = False  # a file lists the names of its weights
    calls_functions: ClassVar[bool] = False  # which no file holds; or it is of a class that no file holds
    inputs: ClassVar[str] = ""  # what it reads that is no sequence of positions
    learns_from_labels: ClassVar[bool] = False  # its own weights, from all label sequences together
    adds_to_chain: ClassVar[bool] = False  # without weights of its own it is a chain

    def check(self, settings: "CRFSettings") -> None:
        """Refuse parameters that do not go with the structure."""

    def find_potentials(self, settings: "CRFSettings") -> type[FeaturePotentials]:
        """The potentials that training makes."""
        return self.potentials or potentials_without_structure(settings)

    def learn(self, given: TrainingInput) -> TrainingSet:
        """The model that training data call for, beside what a base has, and the data in numbers."""
        return learn_sequences(self.find_potentials(given.settings), given)

    def complete_labels(self, structure: Any, labels: Labels) -> Labels:
        """The labels of training data with those that outputs may have beside them."""
        return labels

    def reads_sequences(self, structure: Any) -> bool:
        """Whether training looks at the sequences themselves: features and labels as numbers are not enough."""
        return True

    def growth(self, structure: Any) -> Growth | None:
        """How training is to choose patterns, if it is."""

    def read_labels(self, X: Any, y: Any, structure: Any, which: str = "") -> tuple[Any, Any]:
        """X and y, the latter as lists of labels; `which` is "dev " for held-out data."""
        return X, y

    def read_spans(self, structure: Any, labels: Sequence[Hashable], scheme: str | None) -> SpanLabels | None:
        """How labels are read as spans; None: the outputs are spans themselves."""
        return SpanLabels.of(labels, scheme)

    def functions(self, structure: Any) -> Sequence[Callable[..., Any]]:
        """The functions that it calls, or its class, in the order in which `crfkit.load` takes them."""
        return ()

    def text(self, structure: Any) -> str:
        """What a checkpoint compares; what the functions give on the data is compared too."""
        return f"{structure!r} {', '.join(map(by_code, self.functions(structure)))}".rstrip()

    def bind(self, structure: Any, resources: Resources | None) -> Any:
        """The structure with the resources that its features may name."""
        return structure

    def used_resources(self, structure: Any) -> dict[str, Resource | MissingResource]:
        """The resources that its features read, by name."""
        return {}

    def to_json(self, structure: Any) -> dict[str, Any]:
        """What a model file says of it beside its chain, where that is not with the weights."""
        return {}

    def is_in(self, settings: dict[str, Any]) -> bool:
        """Whether the model of a file with these settings has such a structure."""
        parameters = settings.get("parameters")
        structure = parameters.get("structure") if isinstance(parameters, dict) else None
        return settings.get(self.key) is not None or (isinstance(structure, dict) and self.key in structure)

    def open(self, stored: StoredModel) -> tuple[SequenceStructure, FeaturePotentials]:
        """The structure and the potentials of a model file."""
        raise NotImplementedError
