"""Helpers for tests of runs with an SDN controller."""


def controller_log(folder):
    """The log of a run's controller, which must have no error."""
    log = (folder / "logs" / "0" / "controller.log").read_text()
    assert "ERROR" not in log and "Traceback" not in log, log
    return log
