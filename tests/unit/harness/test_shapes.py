from typing import Any

from harness import scaling, shapes

SOURCE = """
import torch
batch_size, width = 128, 2048 * 2
height = depth = (
    256
)
kernel_size = (3, 5)
hidden: int = 1024
layers = [1024] * 4
name = "x"
rate = 0.5
groups = hidden // 64
height = 64
def get_inputs():
    return [torch.rand(batch_size, 224, 224, 3)]
def get_init_inputs():
    return [hidden, 1000]
"""


def test_sizes_are_found_with_their_last_value() -> None:
    assert shapes.Sizes(SOURCE).values() == {
        "batch_size": 128,
        "width": 4096,
        "height": 64,
        "kernel_size[0]": 3,
        "kernel_size[1]": 5,
        "hidden": 1024,
        "layers[0]": 1024,
        "get_inputs:224": 224,
        "get_init_inputs:1000": 1000,
    }


def test_a_second_name_of_one_constant_is_an_alias() -> None:
    assert shapes.Sizes(SOURCE).aliases == {"depth": "height"}


def test_the_program_with_other_sizes_keeps_its_lines_and_the_rest() -> None:
    sizes = shapes.Sizes(SOURCE)
    text = sizes.source_with({"width": 32, "height": 8, "layers[0]": 16, "get_inputs:224": 24})
    assert text.count("\n") == SOURCE.count("\n")
    module: dict[str, Any] = {}
    exec(text, module)
    assert (module["width"], module["height"], module["layers"]) == (32, 8, [16] * 4)
    assert (module["batch_size"], module["hidden"], module["groups"]) == (128, 1024, 16)
    assert module["get_inputs"]()[0].shape == (128, 24, 24, 3)


def reduce(target: int, scale: float = 0.01, **sizes: int) -> dict[str, int]:
    return {**sizes, **scaling.reduced(sizes, sizes, target, scale)}


def test_a_reduced_size_keeps_its_remainder() -> None:
    assert reduce(64, 0.1, dim=4095)["dim"] % 64 == 4095 % 64
    assert reduce(256, 0.1, dim=4095)["dim"] % 128 == 4095 % 128
    assert reduce(128, 0.1, dim=8192)["dim"] == 128


def test_sizes_that_differ_go_on_to_differ_in_the_same_order() -> None:
    new = reduce(32, m=2048, k=8192, n=4096)
    assert new["m"] < new["n"] < new["k"]


def test_equal_sizes_stay_equal() -> None:
    new = reduce(32, 0.1, height=512, width=512)
    assert new["height"] == new["width"] == 32


def test_small_constants_stay() -> None:
    new = reduce(32, kernel_size=3, stride=2, channels=16, dim=4096)
    assert (new["kernel_size"], new["stride"], new["channels"]) == (3, 2, 16)


def test_groups_go_on_to_divide_channels() -> None:
    new = reduce(32, groups=12, channels=768)
    assert new["channels"] % new["groups"] == 0
    new = reduce(64, num_groups=256, out_features=8192)
    assert new["out_features"] % new["num_groups"] == 0
    assert new["out_features"] // new["num_groups"] >= 2


def test_a_patch_goes_on_to_divide_the_image() -> None:
    new = reduce(32, patch_size=14, image_size=224)
    assert new["image_size"] % new["patch_size"] == 0


def test_a_batch_stays_above_one() -> None:
    assert reduce(16, batch_size=128)["batch_size"] == 2
    assert reduce(16, batch_size=2)["batch_size"] == 2


def test_no_size_goes_below_what_the_scale_asks_where_the_target_allows() -> None:
    assert reduce(65536, 0.5, dim=4096)["dim"] == 2048


def test_the_ladder_ends_with_the_batch_alone() -> None:
    kinds = list(scaling.ladder({"batch_size": 128, "height": 224, "channels": 64}, 0.1, {}))
    assert set(kinds[0][0].changed) == {"batch_size", "height", "channels"}
    assert set(kinds[-1][0].changed) == {"batch_size"}
