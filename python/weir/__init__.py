"""Weir: one file, stream or programme to any number of receivers, each at the rate that its own path can fairly carry.

:mod:`weir.lab` is the laboratory: scenarios of multicast and unicast congestion control, run on a simulated network with the
protocol code that also runs on sockets, with results as Arrow tables. :mod:`weir.transfer` sends and receives files, on Linux.
"""

import sys

from weir import lab
from weir._weir import CODE_VERSION, __version__

__all__ = ["CODE_VERSION", "__version__", "lab"]

if sys.platform == "linux":
    from weir.transfer import Transfer, TransferError, receive, send_file

    __all__ += ["Transfer", "TransferError", "receive", "send_file"]
