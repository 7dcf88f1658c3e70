"""Ctrl-C and SIGTERM: the first one asks, the second one does not wait."""

from __future__ import annotations

import signal
import threading
from types import TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """While entered, the first signal only sets ``asked``; the next raises ``KeyboardInterrupt``.

    Whoever is in the midst of something finishes it, looks at ``asked`` and stops. Only the main
    thread receives signals: elsewhere this does nothing.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                # A signal that the shell ignores on our behalf, as for a job in the background,
                # stays ignored.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._remember)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _remember(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
