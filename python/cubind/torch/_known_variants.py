"""The variants that an operator has loaded, and what its calls know of them."""

from __future__ import annotations

from ._call import Call
from ._variants import Key, Loaded


class KnownVariants:
    """by_key: the loaded variants. calls: the operator's, by the values of the flags; a call that knows its
    variants launches without a line of Python. The operator's lock guards all but single reads."""

    def __init__(self) -> None:
        self.by_key: dict[Key, tuple[Loaded, ...]] = {}
        self.calls: dict[tuple[int, ...], Call] = {}
        self._yielding: set[Key] = set()  # a variant yields to torch's function

    def covering(self, key: Key, dims: tuple[int, ...]) -> Loaded | None:
        """A variant that holds for these dims."""
        variants = self.by_key.get(key, ())
        return next((one for one in variants if one.extents(dims) is not None), None)

    def never_yields(self, key: Key) -> bool:
        """Whether variants of the key are loaded, and torch's function is called for none of them."""
        return key in self.by_key and key not in self._yielding

    def each(self) -> list[tuple[Key, Loaded]]:
        return [(key, one) for key, known in self.by_key.items() for one in known]

    def put(self, key: Key, variants: tuple[Loaded, ...]) -> None:
        """From now on the key has these."""
        self.tell(key, variants)
        self.by_key[key] = variants

    def drop(self, key: Key) -> None:
        """From now on the key has none, and calls look for one."""
        del self.by_key[key]
        self.untell(key)

    def replace(self, by_key: dict[Key, tuple[Loaded, ...]]) -> dict[Key, tuple[Loaded, ...]]:
        """From now on there are these; gives the earlier ones."""
        earlier, self.by_key = self.by_key, by_key
        self.clear_calls()
        self.tell_all()
        return earlier

    def tell_all(self) -> None:
        """Calls know the variants as they are now; what they know of other keys stays."""
        for key, known in self.by_key.items():
            self.tell(key, known)

    def tell(self, key: Key, variants: tuple[Loaded, ...]) -> None:
        """Calls know these as the key's; none of them: there is no kernel."""
        if any(one.yields for one in variants):
            self._yielding.add(key)
        else:
            self._yielding.discard(key)
        if key[2] in self.calls:
            self.calls[key[2]].know(key, variants)

    def untell(self, key: Key) -> None:
        """Calls look again whether there is a kernel."""
        if key[2] in self.calls:
            self.calls[key[2]].forget(key)

    def clear_calls(self) -> None:
        """The same for all keys."""
        for call in self.calls.values():
            call.native.clear()
