"""parts.py PART/PARTS NAME...: of the tests that unittest finds under the names every PARTSth, so that a long program of tests is several
of ctest's, and no test is in none of them. A class with `in_one_part = True` stays whole: what its setUpClass makes is made once."""

import itertools
import os
import sys
import unittest


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


def units(names):
    """Lists of tests that stay together."""
    tests = tests_of(unittest.defaultTestLoader.loadTestsFromNames(names))
    for kind, of_kind in itertools.groupby(tests, type):
        of_kind = list(of_kind)
        yield from [of_kind] if getattr(kind, "in_one_part", False) else ([test] for test in of_kind)


def main():
    part, parts = map(int, sys.argv[1].split("/"))
    sys.path.insert(0, os.getcwd())
    mine = itertools.islice(units(sys.argv[2:]), part - 1, None, parts)
    result = unittest.TextTestRunner(verbosity=2).run(unittest.TestSuite(itertools.chain.from_iterable(mine)))
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
