"""Arguments of public functions: one of the wrong type is refused before anything is done with it.

`checked` compares each argument with the annotation of its parameter, and raises a TypeError (for a value that is none
of a few allowed ones, a ValueError) that names the parameter, what was given, and what to give. Annotations are the
only table: they are evaluated at the first call, so that decorating costs an import nothing. Functions that run once
per chunk or per event are not decorated.

`checked_fields` does the same for a named tuple that callers make, and `check_fields` for a struct. Structs of which
logs and streams make millions check nothing: where one makes a function fail, the error names what is wrong in it.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import AsyncIterable, Callable, Collection, Container, Iterable, Mapping, Sequence
from enum import Enum
from functools import wraps
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, Final, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints, overload

Hint = Any
"""An evaluated annotation."""

Expected = Mapping[str, str | None]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
KindT = TypeVar("KindT", bound=type[tuple[Any, ...]])

_NAMES: Final[dict[str, str]] = {
    "Any": "any value",
    "AsyncIterable": "an async iterator, made by an `async def` function that yields",
    "ChunkWriter": "ChunkWriter(version)",
    "Chat": "Chat(answer)",
    "Limits": "Limits(calls=5)",
    "NoneType": "None",
    "Ownership": 'Ownership(user="ann")',
    "Path": "a path",
    "RequestOptions": 'RequestOptions(model="…")',
    "Retry": "Retry(times=2)",
    "SdkVersion": "a release as '6.0.100'",
    "Store": "open_store(path)",
    "StreamStore": "SqliteStreamStore(path)",
    "Streams": "Streams(SqliteStreamStore(path))",
    "Tool": "Tool(function)",
    "Version": "5, 6, 7 or a release as '6.0.100'",
    "UIMessageStore": "UIMessageStore(open_store())",
    "bool": "True or False",
    "bytes": "bytes",
    "datetime": "a datetime with a time zone",
    "float": "a number",
    "int": "a whole number",
    "str": "text",
    "tzinfo": 'a time zone, as ZoneInfo("Europe/Berlin")',
}
"""Name of a type -> how to give one; other types are called by their names."""

_WHOLE: Final = frozenset({"Ownership", "RequestOptions"})
"""Names of structs that callers make by hand, and whose fields are checked with them, as those of all named tuples."""

_LIKE_AN: Final = ("A", "E", "I", "O", "Un")
"""How names begin that are spoken with a vowel first."""

_SEVERAL: Final = (list, tuple, set, frozenset)
"""What can be looked into without using it up."""


@overload
def checked(function: FunctionT, /) -> FunctionT: ...


@overload
def checked(*, modules: tuple[str, ...] = (), **expected: str | None) -> Callable[[FunctionT], FunctionT]: ...


def checked(
    function: Callable[..., Any] | None = None, /, *, modules: tuple[str, ...] = (), **expected: str | None
) -> Callable[..., Any]:
    """Decorate a function so that it refuses arguments of the wrong type.

    Args:
        function: The function; left out where the decorator has other arguments.
        modules: Where names of its annotations are that its own module imports for type checkers only.
        expected: Parameter -> what to give, where its type does not say it; None for one that the function checks
            itself, since it has more to say.
    """
    if function is None:

        def decorate(given: Callable[..., Any]) -> Callable[..., Any]:
            return _checked(given, modules, expected)

        return decorate
    return _checked(function, modules, expected)


def check_methods(kind: type, protocol: type, modules: tuple[str, ...]) -> None:
    """Let the methods of a class refuse arguments that do not fit the annotations of the protocol that it implements.

    Their annotations are equal; the protocol's are those that callers read.
    """
    for name, promised in vars(protocol).items():
        if not name.startswith("_") and callable(promised) and hasattr(kind, name):
            method = getattr(kind, name)  # A class that another one extends has checked it already.
            setattr(kind, name, _checked(getattr(method, "__wrapped__", method), (protocol.__module__, *modules), {}))


def checked_fields(kind: KindT) -> KindT:
    """Decorate a named tuple so that it refuses unknown fields, and those of the wrong type, when it is made."""
    make: Callable[..., Any] = kind.__new__

    names: tuple[str, ...] = getattr(kind, "_fields", ())

    @wraps(make)
    def new(cls: type[Any], *args: Any, **named: Any) -> Any:
        check_names(kind.__name__, named, names)
        made = make(cls, *args, **named)
        # A module may make one of defaults alone, before the names in the annotations are there.
        if args or named:
            _check_values(kind, made)
        return made

    kind.__new__ = new
    return kind


def check_fields(value: object) -> None:
    """Refuse a struct with a field of the wrong type; to be called as its `__post_init__`."""
    _check_values(type(value), value)


def check_names(owner: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Raise TypeError, which says what there is, for the name of an argument that a function or type does not have."""
    for name in given:
        if name not in known:
            from difflib import get_close_matches

            near = get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{owner} has no parameter {name!r}: expected some of {', '.join(known)}{hint}")


def refusal(name: str, value: object, expected: str) -> TypeError:
    """The error for an argument of the wrong type, for functions that are not decorated."""
    return TypeError(f"{name} cannot be {shown_value(value)}: expected {expected}")


class _Parameter(NamedTuple):
    name: str
    hint: Hint
    quick: frozenset[type]
    """Values of exactly these types fit without a further look."""
    expected: str | None

    def check(self, value: Any) -> None:
        if type(value) in self.quick or _fits(value, self.hint):
            return
        place, value, hint = _innermost(self.name, value, self.hint)
        wanted = self.expected if self.expected is not None and place == self.name else _describe(hint)
        allowed = list(map(type, get_args(hint))) if get_origin(hint) is Literal else []
        error = refusal(place, value, wanted)
        raise ValueError(*error.args) if type(value) in allowed else error


class _Parameters:
    """The parameters of one function, from its annotations."""

    def __init__(self, function: Callable[..., Any], modules: tuple[str, ...], expected: Expected) -> None:
        code = function.__code__
        positional = code.co_varnames[: code.co_argcount]
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        written = function.__annotations__
        hints = _evaluated(function.__annotations__, function.__module__, modules)
        self.named = {
            name: _Parameter(name, hints[name], _quick(hints[name]), expected.get(name, _NAMES.get(str(written[name]))))
            for name in names
            if name in hints and expected.get(name, "") is not None
        }
        self.positional = [self.named.get(name) for name in positional]
        self.options: Collection[str] | None = None
        """All names that may be given, for a function whose options are a typed dict; Python checks others itself."""
        options = next((hint for name, hint in hints.items() if name not in names and name != "return"), None)
        if getattr(get_origin(options), "__name__", "") == "Unpack":
            (fields,) = get_args(options)
            of_options = _evaluated(fields.__annotations__, fields.__module__, modules)
            self.named |= {name: _Parameter(name, hint, _quick(hint), None) for name, hint in of_options.items()}
            self.options = {*names, *of_options}


def _checked(function: Callable[..., Any], modules: tuple[str, ...], expected: Expected) -> Callable[..., Any]:
    found: _Parameters | None = None

    @wraps(function)
    def check(*args: Any, **named: Any) -> Any:
        nonlocal found
        if found is None:
            found = _Parameters(function, modules, expected)
        for parameter, value in zip(found.positional, args, strict=False):
            if parameter is not None and type(value) not in parameter.quick:
                parameter.check(value)
        for name, value in named.items():
            parameter = found.named.get(name)
            if parameter is not None and type(value) not in parameter.quick:
                parameter.check(value)
            elif parameter is None and found.options is not None and name not in found.options:
                check_names(function.__name__, [name], sorted(found.named))
        try:
            return function(*args, **named)
        except (AttributeError, TypeError) as error:
            given = [(each.name, value) for each, value in zip(found.positional, args, strict=False) if each]
            fault = next(filter(None, (_fault_in(name, value) for name, value in (*given, *named.items()))), None)
            if fault is not None:
                raise fault from error
            raise

    return check


# -- annotations


class _Names(dict[str, Any]):
    """The names of a module, and those that it imports for type checkers only."""

    def __init__(self, module: str, modules: tuple[str, ...]) -> None:
        super().__init__(vars(sys.modules[module]))
        self._modules = modules

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            raise KeyError(name)
        for module in self._modules:
            found = vars(import_module(module)).get(name)
            if found is not None:
                return found
        raise KeyError(name)


def _evaluated(annotations: Mapping[str, Any], module: str, modules: tuple[str, ...]) -> dict[str, Hint]:
    """Name -> type. A type of a package that is not installed may be anything."""
    names = _Names(module, modules)
    found: dict[str, Hint] = {}
    for name, annotation in annotations.items():
        if name == "return":
            continue
        text = getattr(annotation, "__forward_arg__", annotation)
        try:
            # The text is turnlog's own source, as for `typing.get_type_hints`, which evaluates the results too.
            found[name] = eval(text, {}, names) if isinstance(text, str) else text
        except NameError:
            found[name] = Any
    return found


_checks: dict[type, tuple[tuple[str, _Parameter], ...]] = {}


def _check_values(kind: type[Any], made: object) -> None:
    if kind not in _checks:
        hints = _evaluated(kind.__annotations__, kind.__module__, ("turnlog.model",))
        _checks[kind] = tuple(
            (name, _Parameter(f"{kind.__name__}.{name}", hint, _quick(hint), None)) for name, hint in hints.items()
        )
    for name, parameter in _checks[kind]:
        value = getattr(made, name)
        if type(value) not in parameter.quick:
            parameter.check(value)


_fields: dict[type, tuple[_Parameter, ...]] = {}


def _fields_of(kind: type[Any]) -> tuple[_Parameter, ...]:
    """The fields, with their types, of a named tuple or struct that is checked with them; none for other types."""
    if kind not in _fields:
        is_open = "_fields" in kind.__dict__ or kind.__name__ in _WHOLE
        own = kind.__annotations__ if is_open else {}
        hints = _evaluated(own, kind.__module__, ("turnlog.model",))
        _fields[kind] = tuple(_Parameter(name, hint, _quick(hint), None) for name, hint in hints.items())
    return _fields[kind]


# -- whether a value fits


def _alternatives(hint: Hint) -> tuple[Hint, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _quick(hint: Hint) -> frozenset[type]:
    """The types whose values fit whatever they are."""
    plain = {each for each in _alternatives(hint) if each in (str, int, float, bool, bytes, NoneType)}
    plain |= {NoneType} if any(each is None for each in _alternatives(hint)) else set()
    return frozenset(plain | ({int} if float in plain else set()))


def _fits(value: Any, hint: Hint) -> bool:
    return any(_fits_one(value, each) for each in _alternatives(hint))


def _fits_one(value: Any, hint: Hint) -> bool:
    origin = get_origin(hint)
    if hint is Any or hint is object or isinstance(hint, TypeVar):
        return True
    if hint is None:
        return value is None
    if origin is Literal:
        return any(value == each and type(value) is type(each) for each in get_args(hint))
    if origin is Callable or hint is Callable:
        return callable(value)
    if origin is not None:
        return _fits_generic(value, origin, get_args(hint))
    return not isinstance(hint, type) or _fits_type(value, hint)


def _fits_generic(value: Any, origin: type, inner: tuple[Hint, ...]) -> bool:
    # A text is a sequence of texts, and bytes one of numbers: nobody means them so.
    if not isinstance(value, origin) or isinstance(value, str | bytes):
        return False
    found: Any = value
    if isinstance(value, Mapping):
        return all(_fits(each, inner[-1]) for each in (found.values() if issubclass(origin, Mapping) else found))
    if not isinstance(value, _SEVERAL) or not inner:
        return True
    # A chat may hold thousands of messages: values of just these types need no look each.
    plain = {each for each in _alternatives(inner[0]) if isinstance(each, type) and not _fields_of(each)}
    return set(map(type, found)) <= plain or all(_fits(each, inner[0]) for each in found)


def _fits_type(value: Any, kind: type[Any]) -> bool:
    if getattr(kind, "_is_protocol", False):
        return not isinstance(value, type) and not _missing(value, kind)
    if issubclass(kind, Enum):
        return isinstance(value, kind) or value in [each.value for each in kind]
    if kind in (int, float):
        return isinstance(value, (int, kind)) and not isinstance(value, bool)
    if kind is bytes:
        return isinstance(value, bytes | bytearray | memoryview)
    if not isinstance(value, kind):
        return False
    # A filter has two dozen fields, of which most are left out.
    return all(
        type(field) in each.quick or _fits(field, each.hint)
        for each in _fields_of(kind)
        for field in [getattr(value, each.name)]
    )


def _missing(value: object, protocol: type) -> list[str]:
    """The methods of a protocol that a value does not have."""
    methods = {name for base in protocol.__mro__[:-1] for name in vars(base) if not name.startswith("_")}
    return sorted(name for name in methods if not callable(getattr(value, name, None)))


# -- what is wrong


def _innermost(place: str, value: object, hint: Hint) -> tuple[str, object, Hint]:
    """The place inside a wrong value that is wrong: a field, an item, or the value itself."""
    for each in _alternatives(hint):
        for inner_place, inner, inner_hint in _inside(place, value, each):
            if not _fits(inner, inner_hint):
                return _innermost(inner_place, inner, inner_hint)
    return place, value, hint


def _inside(place: str, value: Any, hint: Hint) -> Iterable[tuple[str, object, Hint]]:
    origin, inner = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and origin is None:
        if not getattr(hint, "_is_protocol", False) and isinstance(value, hint):
            return [(f"{place}.{each.name}", getattr(value, each.name), each.hint) for each in _fields_of(hint)]
    elif isinstance(origin, type) and isinstance(value, origin) and inner:
        if isinstance(value, Mapping):
            return [(f"{place}[{key!r}]", each, inner[-1]) for key, each in cast("Mapping[Any, Any]", value).items()]
        if isinstance(value, _SEVERAL):
            return [(f"{place}[{at}]", each, inner[0]) for at, each in enumerate(cast("Iterable[Any]", value))]
    return ()


def _fault_in(place: str, value: Any) -> TypeError | None:
    """The error for the first field that does not fit, at any depth, of a struct or of the structs in a list."""
    if isinstance(value, list | tuple):
        inside = enumerate(cast("Iterable[Any]", value))
        return next(filter(None, (_fault_in(f"{place}[{at}]", each) for at, each in inside)), None)
    kind = cast("type[Any]", type(value))
    names: tuple[str, ...] = getattr(kind, "__struct_fields__", ())
    hints = get_type_hints(kind) if names else {}
    for name in names:
        hint, field = hints[name], _as_meant(getattr(value, name), hints[name])
        if not _fits(field, hint):
            where, found, wanted = _innermost(f"{place}.{name}", field, hint)
            return refusal(where, found, _describe(wanted))
        fault = _fault_in(f"{place}.{name}", field)
        if fault is not None:
            return fault
    return None


def _as_meant(value: Any, hint: Hint) -> Any:
    """A list as a tuple where one is meant, which does no harm."""
    kind = cast("type[Any]", type(value))
    return tuple(value) if kind is list and any(get_origin(each) is tuple for each in _alternatives(hint)) else value


def shown_value(value: Any) -> str:
    """A wrong value, short: its type, and itself where it is plain."""
    if isinstance(value, type):
        return f"the class {value.__name__} itself"
    if value is None or isinstance(value, bool):
        return repr(value)
    name = getattr(value, "__qualname__", None)
    if isinstance(value, str | int | float):
        text = repr(value)
        return f"{text if len(text) <= 40 else text[:39] + '…'} ({type(value).__name__})"
    return type(value).__name__ if not isinstance(name, str) else f"{name} ({type(value).__name__})"


_CONTAINERS: Final[tuple[tuple[type, str], ...]] = (
    (Mapping, "a dict of"),
    (tuple, "a tuple of"),
    (AsyncIterable, _NAMES["AsyncIterable"] + ":"),
    (Iterable, "a list of"),
    (Collection, "a list of"),
    (Container, "a list of"),
)


def _describe(hint: Hint) -> str:
    """What to give, in words."""
    return " or ".join(dict.fromkeys(_describe_one(each) for each in _alternatives(hint)))


def _describe_one(hint: Hint) -> str:
    name, origin = str(getattr(hint, "__name__", hint)), get_origin(hint)
    if hint is None:
        return "None"
    if origin is Literal:
        return f"one of {', '.join(map(repr, get_args(hint)))}"
    if origin is Callable or hint is Callable:
        return "a function"
    if isinstance(origin, type):
        words = next((words for kind, words in _CONTAINERS if issubclass(origin, kind)), origin.__name__)
        return f"{words} {_describe(get_args(hint)[-1 if issubclass(origin, Mapping) else 0])}"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return f"one of {', '.join(repr(each.value) for each in hint)}"
    return _NAMES.get(name, f"an {name}" if name.startswith(_LIKE_AN) else f"a {name}")


# -- what pydantic refused


def plain_reason(kind: str, message: str, context: Mapping[str, Any]) -> str:
    """Why pydantic refused a value, in plain words: from the type, the text and the context of its error."""
    if kind.endswith("too_short") and context.get("min_length") == 1:
        return "is empty"
    words = _REASONS.get(kind)
    return message if words is None else words.format_map(context)


_REASONS: Final = {
    "missing": "is missing",
    "extra_forbidden": "there is no such parameter",
    "literal_error": "expected {expected}",
    "enum": "expected {expected}",
    "greater_than_equal": "expected {ge} or more",
    "less_than_equal": "expected {le} or less",
    "int_parsing": "expected a whole number",
    "int_type": "expected a whole number",
    "string_type": "expected a text",
    "float_type": "expected a number",
    "too_short": "expected {min_length} or more",
    "string_too_short": "expected {min_length} or more characters",
    "value_error": "{error}",
}
"""Type of an error -> what to say of it."""
