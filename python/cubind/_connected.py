"""The client that asks for kernels in the background: found when the first one is needed, and again when its
daemon is lost."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from . import _fork, connect
from .client import Client
from .errors import UnavailableError


class Connected:
    """client: who is asked; None: cubind.connect(), when the first kernel is needed. Safe on many threads."""

    def __init__(self) -> None:
        self.client: Client | None = None
        self._found: Client | None = None  # the client that connected() has made
        self._connecting = _fork.Lock()
        self._guard = _fork.Lock()  # of client

    def use(self, client: Client | None) -> None:
        with self._guard:
            self.client = client

    def connected(self) -> Client:
        """The client. Connecting may take as long as a private daemon takes to start."""
        client = self.client  # use() may have given one while another thread still connects
        if client is not None:
            return client
        with self._connecting:
            if self.client is not None:
                return self.client
            try:
                made = connect()
            except UnavailableError as error:
                raise UnavailableError(error.cause, error.field or "cubind.connect()") from None
            with self._guard:  # use() may have come in between
                if self.client is None:
                    self.client = self._found = made
                return self.client

    @contextlib.contextmanager
    def asked(self) -> Iterator[Client]:
        """connected(), for calls. A daemon that was found here and does not answer is looked for again: a
        private one that has ended has to be started."""
        client = self.connected()
        try:
            yield client
        except UnavailableError as error:
            with self._guard:
                if error.field == client.address and client is self._found and client is self.client:
                    self.client = self._found = None
            raise
