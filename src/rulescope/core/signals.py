"""Handling of Ctrl-C and SIGTERM: the first requests a stop, the second stops at once."""

from __future__ import annotations

import signal
import threading
from types import TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """While entered, the first signal only sets ``asked``; the next raises ``KeyboardInterrupt``.

    The caller finishes its iteration, checks ``asked`` and stops. Only the main thread receives
    signals: in other threads this does nothing.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                # A signal that the shell ignores, as for a background job, stays ignored.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
