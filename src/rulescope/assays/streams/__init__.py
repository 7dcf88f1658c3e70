"""Streams and episode boundaries: exposure, synthetic terminals, CatchStream (E-A3c)."""
