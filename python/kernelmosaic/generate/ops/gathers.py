"""Operators that pick rows or elements by index."""

from __future__ import annotations

from collections.abc import Sequence

from kernelmosaic.generate.cuda.cell import cell_function
from kernelmosaic.generate.cuda.epilogue import NOTHING, Epilogue
from kernelmosaic.generate.cuda.source import Extent, HostFunction
from kernelmosaic.generate.ops.base import Context, Op, like, parameter, tensor
from kernelmosaic.generate.values import Size, Value


class Embedding(Op):
    """Rows of a learned table, or of a value, by index."""

    kind = "embedding"
    styles = 2

    def __init__(self, context: Context, index: Value, rows: Size, width: Size) -> None:
        super().__init__(context, [index])
        self._rows, self._width = rows, width
        self._attribute = context.names.unique(context.draw.choice(["embedding", "table", "emb"]))
        self.constructor += [rows, width]
        self.init.append(f"self.{self._attribute} = nn.Embedding({rows.name}, {width.name})")

    @property
    def sizes(self) -> tuple[Size, ...]:
        return (*self.inputs[0].sizes, self._width)

    @property
    def dtype(self) -> str:
        return "float32"

    def torch(self, names: Sequence[str]) -> str:
        return f"self.{self._attribute}({names[0]})"

    def english(self, names: Sequence[str]) -> str:
        return (
            f"Look up the rows of `self.{self._attribute}.weight` ({self._rows.name}, "
            f"{self._width.name}) that the int64 indices {names[0]} name"
        )

    def latex(self, out: str, names: Sequence[str]) -> str:
        return rf"{out}_{{i,j}} = E_{{{names[0]}_i,\,j}}"

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        index = self.inputs[0]
        table = parameter("table", f"self.{self._attribute}.weight", "float32")
        launch = self.launch(
            name, out, [tensor("index", index), table], [Extent("width", "table.size(1)")], epilogue
        )
        lines = ["float v = table[index[i / width] * width + i % width];"]
        shape = [f"index.size({d})" for d in range(index.rank)] + ["width"]
        return cell_function(launch, like("table", shape), lines, epilogue, style)


class Gather(Op):
    """torch.gather along the last dimension, or index_select along the first."""

    styles = 2

    def __init__(self, context: Context, x: Value, index: Value, form: str) -> None:
        super().__init__(context, [x, index])
        self.kind = form
        self._method = context.draw.chance(0.5)

    @property
    def sizes(self) -> tuple[Size, ...]:
        x, index = self.inputs
        return index.sizes if self.kind == "gather" else (*index.sizes, *x.sizes[1:])

    def torch(self, names: Sequence[str]) -> str:
        x, index = names
        if self.kind == "gather":
            return f"{x}.gather(1, {index})" if self._method else f"torch.gather({x}, 1, {index})"
        return f"{x}[{index}]" if self._method else f"torch.index_select({x}, 0, {index})"

    def english(self, names: Sequence[str]) -> str:
        x, index = names
        if self.kind == "gather":
            return (
                f"For each row of {x} take the columns that the same row of {index} (int64) names"
            )
        return f"Take the rows of {x} that {index} (int64) names"

    def latex(self, out: str, names: Sequence[str]) -> str:
        x, index = names
        if self.kind == "gather":
            return rf"{out}_{{mj}} = {x}_{{m,\,{index}_{{mj}}}}"
        return rf"{out}_{{mj}} = {x}_{{{index}_m,\,j}}"

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        x, index = self.inputs
        arguments = [tensor("x", x), tensor("index", index)]
        columns = Extent("columns", "x.size(1)")
        if self.kind == "gather":
            launch = self.launch(
                name, out, arguments, [columns, Extent("picked", "index.size(1)")], epilogue
            )
            lines = ["float v = x[i / picked * columns + index[i]];"]
            return cell_function(launch, like("x", ["x.size(0)", "picked"]), lines, epilogue, style)
        launch = self.launch(name, out, arguments, [columns], epilogue)
        lines = ["float v = x[index[i / columns] * columns + i % columns];"]
        return cell_function(
            launch, like("x", ["index.size(0)", "columns"]), lines, epilogue, style
        )
