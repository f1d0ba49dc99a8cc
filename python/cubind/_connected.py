"""The client that asks for kernels in the background: found when the first one is needed, and again when its
daemon is lost."""

from __future__ import annotations

import threading

from . import _fork, connect
from .client import Client
from .errors import UnavailableError


class Connected:
    """client: who is asked; None: cubind.connect(), when the first kernel is needed. Safe on many threads."""

    def __init__(self) -> None:
        self.client: Client | None = None
        self._found: Client | None = None  # the client that connected() has made
        self.after_fork()
        _fork.watch(self)

    def after_fork(self) -> None:
        """In the child, where no thread connects."""
        self._connecting = threading.Lock()
        self._guard = threading.Lock()  # of client

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

    def lost(self, client: Client) -> None:
        """The daemon of the client does not answer: one that connected() has found is looked for again, since
        a private daemon that ended has to be started."""
        with self._guard:
            if client is self._found and client is self.client:
                self.client = self._found = None
