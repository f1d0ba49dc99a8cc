"""What a client lists of a daemon, and the tables that it exports and imports."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

from . import _whole_file, _wire
from ._connection import Connection


class Tables:
    """The methods of Client that list."""

    timeout: float
    _connection: Connection

    def table(self, kernel: str | None = None, *, shipped: bool = False, pandas: bool = False) -> Any:
        """The winners as a list of dicts (problem, configuration, device, time_us, evidence, ...), or as a
        pandas frame. kernel: only this one's; None: all. shipped: include those that came with cubind."""
        records = _wire.table_rows(self.export_table(kernel=kernel, shipped=shipped))
        if not pandas:
            return records
        import pandas as pd  # only for who asks for a frame

        return pd.DataFrame(records)

    def export_table(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        kernel: str | None = None,
        replayed: bool = False,
        shipped: bool = False,
    ) -> str:
        """The tuning table as JSON text, also written to `path` if given. kernel: only this one's; None: all.
        replayed: include replayed records. shipped: include the records that came with cubind."""
        named = [kernel] if kernel else []
        text = export(
            self._connection, self.timeout, kernels=named, include_replayed=replayed, include_shipped=shipped
        )
        if path is not None:
            _whole_file.write(path, text)
        return text

    def import_table(self, path: str | os.PathLike[str], *, namespace: str = "") -> dict[str, Any]:
        """Imports the table of the file `path` into a namespace. Returns records_added, records_known,
        trials_added, generation."""
        file = pathlib.Path(path)
        chunk = _wire.messages().TableChunk
        data = file.read_bytes()
        step = 1 << 20
        chunks = [chunk(json=data[at : at + step]) for at in range(0, len(data), step)] or [chunk()]
        chunks[0].file, chunks[0].namespace = str(file), namespace
        return _wire.to_dict(self._connection.upload("ImportTable", chunks, self.timeout))

    def wanted(self, kernel: str = "", *, top: int = 0) -> list[dict[str, Any]]:
        """The problems that were asked for and started no job, most wanted first. kernel: only this one's;
        "": all. top: at most this many; 0: all."""
        request = _wire.messages().ListWantedRequest(kernel=kernel, top=top)
        return [_wire.to_dict(want) for want in self._call("ListWanted", request).wants]

    def status(self) -> dict[str, Any]:
        """The daemon's state: version, generation, kernels, records, jobs_queued, devices, ..."""
        return _wire.to_dict(self._call("GetStatus", _wire.messages().GetStatusRequest()))

    def kernels(self, *, defined: bool = False) -> list[dict[str, Any]]:
        """The kernels that the daemon knows: name, file, dims, types, tunables, records, error.

        defined: the kernels that callers have defined (cubind.triton) instead of those in its folders."""
        request = _wire.messages().ListKernelsRequest(defined=defined)
        return [_wire.to_dict(kernel) for kernel in self._call("ListKernels", request).kernels]

    def _call(self, name: str, request: Any) -> Any:
        return self._connection.unary(name, request, self.timeout)


def export(connection: Connection, timeout: float, **fields: Any) -> str:
    """A table as JSON text. fields: of a v1.ExportTableRequest."""
    request = _wire.messages().ExportTableRequest(**fields)
    return b"".join(chunk.json for chunk in connection.stream("ExportTable", request, timeout)).decode()


def trials(
    connection: Connection, kernel: str, timeout: float, include_samples: bool = False
) -> list[dict[str, Any]]:
    """What the daemon knows of a kernel's configurations. Raises CubindError."""
    text = export(
        connection, timeout, kernels=[kernel], all_trials=True, include_samples=include_samples,
        include_replayed=True, include_provisional=True,
    )  # fmt: skip
    return json.loads(text).get("trials", [])
