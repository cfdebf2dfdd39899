"""Where the tests have handlers and a view wait for each other: nobody goes on before all are inside."""

from threading import Barrier

TURNS = 8
TOGETHER = Barrier(TURNS + 1, timeout=20)
