from typing import Any
def observed(p: Any, wanted: Any, kwargs: Any) -> Any:
    return None
