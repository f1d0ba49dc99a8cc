"""What a client lists of a daemon, and the tables that it exports and imports."""

from __future__ import annotations

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
        request = _wire.messages().ExportTableRequest(
            kernels=[kernel] if kernel else [], include_replayed=replayed, include_shipped=shipped
        )
        chunks = self._connection.stream("ExportTable", request, _wire.messages().TableChunk, self.timeout)
        text = b"".join(chunk.json for chunk in chunks).decode()
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
        parts = [data[at : at + step] for at in range(0, len(data), step)] or [b""]
        chunks = [
            chunk(json=parts[0], file=str(file), namespace=namespace),
            *(chunk(json=p) for p in parts[1:]),
        ]
        reply = self._connection.upload(
            "ImportTable", chunks, _wire.messages().ImportTableReply, self.timeout
        )
        return _wire.to_dict(reply)

    def wanted(self, kernel: str = "", *, top: int = 0) -> list[dict[str, Any]]:
        """The problems that were asked for and started no job, most wanted first. kernel: only this one's;
        "": all. top: at most this many; 0: all."""
        request = _wire.messages().ListWantedRequest(kernel=kernel, top=top)
        reply = self._call("ListWanted", request, _wire.messages().ListWantedReply)
        return [_wire.to_dict(want) for want in reply.wants]

    def status(self) -> dict[str, Any]:
        """The daemon's state: version, generation, kernels, records, jobs_queued, devices, ..."""
        messages = _wire.messages()
        return _wire.to_dict(self._call("GetStatus", messages.GetStatusRequest(), messages.GetStatusReply))

    def kernels(self, *, defined: bool = False) -> list[dict[str, Any]]:
        """The kernels that the daemon knows: name, file, dims, types, tunables, records, error.

        defined: the kernels that callers have defined (cubind.triton) instead of those in its folders."""
        messages = _wire.messages()
        reply = self._call(
            "ListKernels", messages.ListKernelsRequest(defined=defined), messages.ListKernelsReply
        )
        return [_wire.to_dict(kernel) for kernel in reply.kernels]

    def _call(self, name: str, request: Any, reply: Any) -> Any:
        return self._connection.unary(name, request, reply, self.timeout)
