from __future__ import annotations

import pytest
import waiting


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    waiting.stretch(config)
