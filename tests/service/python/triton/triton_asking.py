"""Cases whose autotuned kernels ask a daemon, for tests."""

import threading

import cubind
import cubind.triton
import running
import triton_stub as stub
from fake_daemon import FakeDaemon, chosen, tuning

PATIENCE = 5.0  # seconds for an answer that is there: a busy machine may need them


class Case(stub.Case):
    def install(self, address, waits=False, timeout=running.PATIENCE, patience=PATIENCE):
        client = self.enterContext(cubind.connect(address))
        self.asking = stub.install_client(client, waits, timeout, patience)
        self.addCleanup(cubind.triton.uninstall)  # before the daemon ends

    def fake(self, answer, **others):
        daemon = self.enterContext(FakeDaemon(answer))
        self.install(daemon.address, **others)
        return daemon

    def waiting(self, kernel):
        """A daemon, a thread whose call waits for a tuning, and the event that ends that."""
        begun, ends = threading.Event(), threading.Event()

        def answer(request):
            if not request.on_miss:
                return tuning()
            begun.set()
            ends.wait(running.PATIENCE)
            return chosen(1)

        daemon = self.fake(answer, waits=True)
        self.addCleanup(ends.set)
        thread = threading.Thread(target=self.call, args=(kernel,), daemon=True)
        thread.start()
        self.assertTrue(begun.wait(running.PATIENCE))
        return daemon, thread, ends

    def is_served(self, kernel):
        """Whether a call runs what the daemon chose, sooner or later."""

        def served():
            self.call(kernel)
            return "served 1" in cubind.triton.report()

        return running.eventually(served)
