"""The categorical value interface: alternatives to it (E-IF), and its effect on the state (P1)."""
