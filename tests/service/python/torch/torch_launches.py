"""For tests of what operators launch: a daemon, and a driver that takes launches and reads no memory. Tensors
lie on the CPU. Import torch_found first."""

import functools
import unittest

import cubind
import cubind.torch as operators
import running


# One for all tests of a file: it compiles each kernel once.
@functools.cache
def _daemon():
    daemon = running.Daemon()
    unittest.addModuleCleanup(daemon.__exit__)
    return daemon


class OnFakeDriver(unittest.TestCase):
    def setUp(self):
        operators.strict()
        self.addCleanup(operators.strict, False)
        self.daemon = _daemon()
        self.client = self.other_client()
        operators.use(self.client)
        operators.step()  # forgets the answers of another client

    def other_client(self):
        """Another client of the same daemon."""
        client = cubind.connect(self.daemon.address, timeout=running.PATIENCE)
        self.addCleanup(client.close)
        return client

    def launches_of(self, call, parameters):
        """What `call` returns, and its launches, with the first `parameters` of each: no launch may have
        fewer."""
        driver = running.FakeDriver(parameters)
        before = len(driver.launches())
        result = call()
        return result, driver.launches()[before:]
