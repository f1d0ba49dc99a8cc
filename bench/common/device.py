"""The facts of the current device that kernel specs read."""

import torch


def device_constants():
    properties = torch.cuda.get_device_properties(0)
    return {
        "sm_count": properties.multi_processor_count,
        "shared_optin": properties.shared_memory_per_block_optin,
        "l2_bytes": properties.L2_cache_size,
        "cc": 10 * properties.major + properties.minor,
    }
