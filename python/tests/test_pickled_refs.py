"""A reference that the program itself pickles may reach another process by any way. Its owner knows of it before."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from helpers_of_client import kinds, unknown
from mininode import MiniNode

import mobula
from mobula import _api, _ids, _runtime
from mobula._client import announcing
from mobula._wire import messages as m


def one() -> int:
    return 1


def asked(mini: MiniNode) -> int:
    """How often the owner was asked whether it has heard all."""
    made = {p.id for p in kinds(mini, m.PutValue, m.Seal)}
    return sum(_ids.is_put(g.id) and g.id not in made for g in kinds(mini, m.Get))


MADE: dict[str, Any] = {
    "put": lambda: mobula.put(1),
    "large put": lambda: mobula.put(np.ones(50_000)),
    "task": lambda: mobula.remote(one).remote(),
    "second return": lambda: mobula.remote(one).options(num_returns=2).remote()[1],
    "actor": lambda: _api.ActorHandle(mobula.remote(one).remote(), "a", "0", {"m": (1, "")}),
}


@pytest.mark.parametrize("what", MADE)
def test_its_owner_has_heard_of_what_is_pickled(mini: MiniNode, what: str) -> None:
    for _ in range(20):
        for other in MADE.values():
            other()
        ref = MADE[what]()
        pickle.dumps(ref)
        id = ref._h.id
        made = [p.id for p in kinds(mini, m.PutValue, m.Seal)] + [s.spec.id for s in kinds(mini, m.Submit)]
        assert id in made or id[:_ids.TASK] in made


def test_the_owner_is_asked_once_for_many(mini: MiniNode) -> None:
    refs = [mobula.put(i) for i in range(1000)]
    pickle.dumps(refs)
    assert 1 <= asked(mini) < 100  # again where something else was sent meanwhile


def test_what_travels_in_a_value_needs_no_question(mini: MiniNode) -> None:
    ref = mobula.put(1)
    box = mobula.put([ref, {"it": ref}])
    assert mobula.get(mobula.get(box)[0]) == 1
    with pytest.raises(mobula.exceptions.NotEncodableError):
        mobula.put([ref, (i for i in ())])
    assert asked(mini) == 0


def test_a_copy_is_the_reference(mini: MiniNode) -> None:
    ref = mobula.put(1)
    assert copy.copy(ref) == ref == pickle.loads(pickle.dumps(ref)) and mobula.get(copy.deepcopy([ref])[0]) == 1


def test_who_does_not_answer_is_not_waited_for_long(mini: MiniNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcing, "PATIENCE", 0.01)
    ref = mobula.put(1)
    with mini.lock:
        raw = pickle.dumps(ref)
    assert pickle.loads(raw) == ref
    pickle.dumps(ref)
    assert asked(mini) == 2  # it had not answered, so it is asked again


def test_a_pickle_needs_no_connection(mini: MiniNode) -> None:
    ref, other = mobula.put(1), unknown()
    _runtime.client().close()
    assert pickle.dumps([ref, other])
