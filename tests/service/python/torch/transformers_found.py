"""For tests that need `transformers`, which is a module of this one where it is installed."""

import unittest

try:
    import transformers
except ImportError:
    transformers = None

needs_transformers = unittest.skipIf(transformers is None, "needs transformers")
