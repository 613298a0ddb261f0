"""What tests of runs with a controller share."""


def controller_log(folder):
    """What the controller of a run wrote down: of nothing that it could not handle."""
    log = (folder / "logs" / "0" / "controller.log").read_text()
    assert "ERROR" not in log and "Traceback" not in log, log
    return log
