"""Small price lists and prices, written for the tests of `planner/reading/`; none is a copy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from tests.reading.cluster_writers import table

SKYPILOT = ["InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "Price", "Region", "GpuInfo",
            "SpotPrice"]  # fmt: skip


def skypilot(*rows: Sequence[object]) -> str:
    """A vms.csv of Lambda: two machines that the catalog knows, one that it does not, one without a device."""
    rows = rows or (
        ("gpu_1x_a10", "A10", 1.0, 30.0, 200.0, 0.5, "us-east-1", "{'Gpus': []}", ""),
        ("gpu_8x_h100_sxm5", "H100", 8.0, 208.0, 1800.0, 16, "us-east-1", "", ""),
        ("gpu_9x_new", "NEW", 9.0, 1.0, 1.0, 9, "us-east-1", "", ""),
        ("cpu_4x", "", "", 4.0, 16.0, 0.2, "us-east-1", "", ""),
    )
    return table(SKYPILOT, rows)


def gpuhunt() -> str:
    """A table of gpuhunt of machines that nobody sells."""
    columns = ["instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name", "gpu_memory", "spot"]
    rows = [("x1", "eu", 2.5, 8, 64, 1, "L4", 24.0, "False"), ("x8", "eu", 8, 64, 512, 8, "L4", 24.0, "True"),
            ("c1", "eu", 0.1, 8, 64, 0, "", "", "False")]  # fmt: skip
    return table(columns, rows)


def azure(currency: str = "USD") -> str:
    """Items of Azure's Retail Prices API, one of them for Windows."""

    def item(price: float, product: str) -> dict[str, object]:
        return {"currencyCode": currency, "retailPrice": price, "armRegionName": "eastus", "productName": product,
                "skuName": "ND96isr H100 v5", "armSkuName": "Standard_ND96isr_H100_v5", "unitOfMeasure": "1 Hour",
                "type": "Consumption", "meterName": "ND96isr H100 v5"}  # fmt: skip

    items = [item(9.5, "Virtual Machines NDsr H100 v5 Series"), item(11.0, "NDsr H100 v5 Series Windows")]
    return json.dumps({"BillingCurrency": currency, "Items": items, "Count": 2}, indent=1)


def pairs() -> str:
    """AWS prices by machine and region, without terms."""
    return json.dumps({"p5.48xlarge/us-east-1": 40.0, "p4d.24xlarge/us-east-1": 16, "m5.large/us-east-1": 0.1,
                       "g6.12xlarge/us-east-1": None}, indent=1)  # fmt: skip


def sky_quantities() -> str:
    """As `sky show-gpus` prints what there is."""
    return """COMMON_GPU  AVAILABLE_QUANTITIES
H100        1, 2, 4, 8
L4          1

OTHER_GPU  AVAILABLE_QUANTITIES
NoSuchGPU  1, 2
"""


def sky_prices() -> str:
    """As it prints what a device costs where."""
    return """GPU   QTY  CLOUD   INSTANCE_TYPE     DEVICE_MEM  vCPUs  HOST_MEM  HOURLY_PRICE  HOURLY_SPOT_PRICE  REGION
H100  8    Lambda  gpu_8x_h100_sxm5  80GB        208    1800GB    $ 16.000      -                  us-east-1
H100  8    AWS     p5.48xlarge       80GB        192    2048GB    $ 40.000      $ 12.500           us-east-1
H100  4    AWS     p5.48xlarge       80GB        192    2048GB    $ 8.000       -                  us-east-1
H100  8    Nobody  some-machine      80GB        1      2GB       $ 20.000      -                  here
H100  8    AWS     p5.48xlarge       80GB        192    2048GB    -             -                  us-east-2
"""


def sky_nodes() -> str:
    """As it prints the nodes of one's own Kubernetes."""
    return """Kubernetes GPUs
GPU  REQUESTABLE_QTY_PER_NODE  TOTAL_GPUS  TOTAL_FREE_GPUS
L4   1, 2, 4                   8           5

Kubernetes per node GPU availability
NODE_NAME  GPU_NAME  TOTAL_GPUS  FREE_GPUS
n1         L4        4           1
n2         L4        4           4
n3         L4        none        0
"""


def sky_accelerators() -> str:
    """Devices and who offers them."""
    return table(["AcceleratorName", "Providers"], [("H100", "aws,gcp"), ("NoSuchGPU", "nobody")])


def model_prices() -> str:
    """LiteLLM's list."""
    chat = {"litellm_provider": "p", "mode": "chat"}
    return json.dumps({
        "sample_spec": {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0, **chat},
        "small": {"input_cost_per_token": 1.5e-07, "output_cost_per_token": 6e-07,
                  "cache_read_input_token_cost": 7.5e-08, **chat},
        "large": {"input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05, **chat},
        "owed": {"input_cost_per_token": -1e-06, "output_cost_per_token": 1e-06, **chat},
        "picture": {"output_cost_per_image": 0.04, "litellm_provider": "p", "mode": "image_generation"},
    }, indent=1)  # fmt: skip


def asset_prices() -> str:
    """OpenCost's prices of one's own."""
    columns = ["EndTimestamp", "InstanceID", "Region", "AssetClass", "MarketPriceHourly", "Version"]
    return table(columns, [("2030-01-01 00:00:00 UTC", "n1", "", "node", 0.5, ""),
                           ("2030-01-01 00:00:00 UTC", "a100", "", "gpu", 1.25, ""),
                           ("2030-01-01 00:00:00 UTC", "l4", "", "gpu", -1, "")])  # fmt: skip


def device_prices() -> str:
    """Devices with a price by cloud."""
    return json.dumps({"gpu_types": [
        {"gpu_type": "H100", "aliases": ["NVIDIA-H100"], "memory_gb": 80, "cost_per_hour_usd": 4.5,
         "cost_per_hour_aws": 0.25, "cost_per_hour_mars": 9},
        {"gpu_type": "New", "aliases": [], "memory_gb": 1, "cost_per_hour_usd": 1.0},
        {"gpu_type": "Free", "memory_gb": 1, "cost_per_hour_usd": 0},
    ]})  # fmt: skip


def shop_prices() -> str:
    """Devices by the names that a shop shows."""
    names = {"Nvidia Tesla A100 GPU running in Tokyo": 3.0, "Nvidia Tesla A100 80GB GPU running in Tokyo": 5.0,
             "Commitment v1: Nvidia L4 GPU running in Tokyo for 1 Year": 0.4,
             "Nvidia L4 GPU attached to Spot Preemptible VMs running in Tokyo": 0.2,
             "Licensing Fee for an image": 0.1, "Reserved Nvidia Tesla A100 GPU in Tokyo": 0}  # fmt: skip
    rows = [{"displayName": name, "secureCloud": True, "securePrice": price} for name, price in names.items()]
    return json.dumps(rows)


def part_prices() -> str:
    """OpenCost's prices of parts."""
    return json.dumps({"provider": "custom", "description": "d", "CPU": "0.03", "RAM": "0.004", "GPU": "0.95",
                       "storage": "0.00005", "spotCPU": "-1"})  # fmt: skip


# name -> kind, and how a file of it is made
SMALL: Mapping[str, tuple[str, Callable[[], str | bytes]]] = {
    "vms.csv": ("price-list", skypilot),
    "gpuhunt.csv": ("price-list", gpuhunt),
    "azure_prices.json": ("price-list", azure),
    "aws_pairs.json": ("price-list", pairs),
    "sky.txt": ("sky-gpus", sky_quantities),
    "sky_prices.txt": ("sky-gpus", sky_prices),
    "sky_nodes.txt": ("sky-gpus", sky_nodes),
    "sky.csv": ("sky-accelerators", sky_accelerators),
    "model_prices.json": ("model-prices", model_prices),
    "asset_prices.csv": ("asset-prices", asset_prices),
    "device_prices.json": ("device-prices", device_prices),
    "shop_prices.json": ("shop-prices", shop_prices),
    "part_prices.json": ("part-prices", part_prices),
}
