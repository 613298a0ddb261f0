"""Helpers for tests of runs with an SDN controller."""


def controller_log(folder):
    """Returns the log of a run's controller. Fails if the log has an error."""
    log = (folder / "logs" / "0" / "controller.log").read_text()
    assert "ERROR" not in log and "Traceback" not in log, log
    return log
