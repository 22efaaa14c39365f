# SPDX-License-Identifier: Apache-2.0
import threading

from penstock.core.idle_pool import IdlePool


def test_the_last_one_of_its_kind_is_taken_first():
    pool = IdlePool(each=3)
    assert pool.take("a") is None
    assert pool.give("a", 1) and pool.give("a", 2) and pool.give("b", 3)
    assert (pool.take("a"), pool.take("a"), pool.take("a"), pool.take("b")) == (2, 1, None, 3)


def test_there_are_limits():
    pool = IdlePool(each=2, kinds=2)
    assert [pool.give("a", i) for i in range(3)] == [True, True, False]
    assert [pool.give(kind, 0) for kind in "bc"] == [True, False]
    assert pool.take("b") == 0 and not pool.give("c", 0), "a kind keeps its place"
    assert len(pool) == 2


def test_a_closed_one_keeps_nothing():
    pool = IdlePool(each=2)
    pool.give("a", 1)
    pool.close()
    assert not pool.give("a", 2) and not pool.give("b", 2) and pool.take("a") is None and not len(pool)


def test_each_object_has_one_user_at_a_time():
    pool, begin, seen = IdlePool(each=8), threading.Barrier(4), []

    def use():
        begin.wait()
        for _ in range(2000):
            mine = pool.take("a") or [0]
            mine[0] += 1
            seen.append(mine[0])
            mine[0] -= 1
            pool.give("a", mine)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert set(seen) == {1} and len(pool) <= 4
