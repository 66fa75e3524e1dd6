"""Builds one ONNX file of multilingual-e5-small: token ids and mask in, one unit vector out.

Two precisions: `int8` (weights rounded to 8 bits per output column, activations quantised on the fly; fast
where the processor has VNNI) and `int4` (the file's own 4-bit blocks, exact, half as fast). The caller keeps
the first whose probe vectors are right on this machine.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from app.embedded.e5_file import BLOCK, Bytes, Weights

Precision = Literal["int8", "int4"]
_MICROSOFT = "com.microsoft"


def _pack(values: Bytes) -> Bytes:
    """Neighbouring 4-bit values into one byte, first one low."""
    packed: Bytes = (values[..., 0::2] | (values[..., 1::2] << 4)).astype(np.uint8)
    return packed


class _Graph:
    """Nodes and constants as they are added."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: npt.ArrayLike) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, kind: str, inputs: Sequence[str], output: str, domain: str = "", **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, list(inputs), [output], domain=domain, **attributes))
        return output


Linear = Callable[[str, str, int, int, str, bool], str]


class _Builder:
    """The network of one weight file."""

    def __init__(self, weights: Weights, precision: Precision) -> None:
        self.w = weights
        self.graph = _Graph()
        self.linear = self._linear_int8 if precision == "int8" else self._linear_int4

    def _linear_int8(self, source: str, name: str, rows: int, columns: int, output: str, bias: bool) -> str:
        values, scales = self.w.blocks(f"{name}.w", rows, columns)
        matrix = ((values.astype(np.float32) - 8) * scales[..., None]).reshape(rows, columns)
        step = np.abs(matrix).max(1) / 127
        step[step == 0] = 1
        rounded = np.clip(np.rint(matrix / step[:, None]), -127, 127).astype(np.int8).T
        add = self.graph.constant
        inputs = [source, add(f"{name}.q", rounded), add(f"{name}.s", step.astype(np.float32))]
        inputs.append(add(f"{name}.z", np.zeros(rows, np.int8)))
        if bias:
            inputs.append(add(f"{name}.b", self.w.floats(f"{name}.b")))
        return self.graph.node("DynamicQuantizeMatMul", inputs, output, _MICROSOFT)

    def _linear_int4(self, source: str, name: str, rows: int, columns: int, output: str, bias: bool) -> str:
        values, scales = self.w.blocks(f"{name}.w", rows, columns)
        inputs = [source, self.graph.constant(f"{name}.q", _pack(values))]
        inputs.append(self.graph.constant(f"{name}.s", scales.reshape(-1)))
        shape: dict[str, Any] = {"K": columns, "N": rows, "bits": 4, "block_size": BLOCK, "accuracy_level": 4}
        product = self.graph.node(
            "MatMulNBits", inputs, f"{output}.m" if bias else output, _MICROSOFT, **shape
        )
        if not bias:
            return product
        return self.graph.node(
            "Add", [product, self.graph.constant(f"{name}.b", self.w.floats(f"{name}.b"))], output
        )

    def embeddings(self) -> str:
        """Word, position and type embeddings, normalised."""
        g, w = self.graph, self.w
        values, scales = w.blocks("emb.word", w.words, w.hidden)
        words = [g.constant("words.q", _pack(values).reshape(w.words, w.hidden // 2)), "input_ids"]
        words.append(g.constant("words.s", scales))
        shape: dict[str, Any] = {"gather_axis": 0, "quantize_axis": 1, "block_size": BLOCK, "bits": 4}
        g.node("GatherBlockQuantized", words, "word", _MICROSOFT, **shape)
        # A slice, not Gather over Range: onnxruntime 1.32 computes the latter wrongly.
        table = w.floats("emb.pos").reshape(-1, w.hidden) + w.floats("emb.type").reshape(-1, w.hidden)[0]
        zero = g.constant("zero", np.array([0], np.int64))
        g.node("Shape", ["input_ids"], "length", start=1, end=2)
        g.node("Slice", [g.constant("positions", table), zero, "length", zero], "position")
        g.node("Add", ["word", "position"], "summed")
        scale = g.constant("emb.scale", w.floats("emb.ln.w"))
        shift = g.constant("emb.shift", w.floats("emb.ln.b"))
        return g.node("LayerNormalization", ["summed", scale, shift], "x", axis=-1, epsilon=w.epsilon)

    def _add_norm(self, source: str, residual: str, norm: str, bias: str, output: str) -> str:
        names = [f"{norm}.w", f"{norm}.b", f"{bias}.b"]
        inputs = [source, residual, *(self.graph.constant(name, self.w.floats(name)) for name in names)]
        return self.graph.node("SkipLayerNormalization", inputs, output, _MICROSOFT, epsilon=self.w.epsilon)

    def layer(self, number: int, source: str) -> str:
        """One transformer block: attention, then the feed-forward part, each with its residual."""
        g, h, inner, p = self.graph, self.w.hidden, self.w.inner, f"l{number}"
        heads = [self.linear(source, f"{p}.{part}", h, h, f"{p}.{part}.out", True) for part in "qkv"]
        g.node("MultiHeadAttention", [*heads, "", "mask32"], f"{p}.att", _MICROSOFT, num_heads=self.w.heads)
        self.linear(f"{p}.att", f"{p}.ao", h, h, f"{p}.ao.out", False)
        middle = self._add_norm(f"{p}.ao.out", source, f"{p}.aln", f"{p}.ao", f"{p}.mid")
        self.linear(middle, f"{p}.fi", inner, h, f"{p}.fi.out", False)
        bias = g.constant(f"{p}.fi.b", self.w.floats(f"{p}.fi.b"))
        g.node("BiasGelu", [f"{p}.fi.out", bias], f"{p}.gelu", _MICROSOFT)
        self.linear(f"{p}.gelu", f"{p}.fo", h, inner, f"{p}.fo.out", False)
        return self._add_norm(f"{p}.fo.out", middle, f"{p}.oln", f"{p}.fo", f"{p}.x")

    def pool(self, source: str) -> None:
        """The mean over real tokens, scaled to length one (the count cancels out)."""
        g = self.graph
        g.node("Cast", ["attention_mask"], "mask", to=TensorProto.FLOAT)
        g.node("Unsqueeze", ["mask", g.constant("last", np.array([2], np.int64))], "mask3")
        g.node("Mul", [source, "mask3"], "masked")
        axis = g.constant("axis", np.array([1], np.int64))
        g.node("ReduceSum", ["masked", axis], "sum", keepdims=0)
        g.node("ReduceL2", ["sum", axis], "norm", keepdims=1)
        g.node("Div", ["sum", "norm"], "embedding")


def onnx_export(weights: Weights, path: Path, precision: Precision) -> None:
    """Write the model: `input_ids`, `attention_mask` [b, s] int64 → `embedding` [b, 384] float32."""
    builder = _Builder(weights, precision)
    builder.graph.node("Cast", ["attention_mask"], "mask32", to=TensorProto.INT32)
    x = builder.embeddings()
    for number in range(weights.layers):
        x = builder.layer(number, x)
    builder.pool(x)
    inputs = [
        helper.make_tensor_value_info(n, TensorProto.INT64, ["b", "s"])
        for n in ("input_ids", "attention_mask")
    ]
    outputs = [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["b", weights.hidden])]
    graph = helper.make_graph(
        builder.graph.nodes, "multilingual-e5-small", inputs, outputs, builder.graph.constants
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(_MICROSOFT, 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), str(path))
