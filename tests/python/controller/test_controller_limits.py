"""Untrusted connections cannot fill the controller's log."""

from __future__ import annotations

import logging

import pytest

pytest.importorskip("uvicorn")
from narrows.controller.limits import OneLine


def test_errors_of_a_library_are_bounded_and_take_one_line_each(caplog):
    log = logging.getLogger("narrows.test")
    log.addFilter(OneLine())
    for _ in range(50):
        try:
            raise ValueError("wrong")
        except ValueError:
            log.exception("Exception in ASGI application\n")
    assert len(caplog.records) == 10
    assert all(record.exc_info is None for record in caplog.records)
    assert caplog.messages[0] == "Exception in ASGI application: ValueError('wrong')"
