"""Scenario texts that several tests extend."""

DUMBBELL = """
duration = "2s"
[topology]
kind = "dumbbell"
rate = "20mbit"
rtt = "20ms"
queue = "1bdp"
"""
SLOW = """
[topology]
kind = "dumbbell"
rate = "10mbit"
rtt = "20ms"
"""
TWO_FLOWS = f'{SLOW}[[flows]]\n[[flows]]\ncc = "bbr"\n'
