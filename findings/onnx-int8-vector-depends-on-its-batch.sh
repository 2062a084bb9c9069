#!/bin/bash
# A good guess says: a model quantised to int8 is less exact, but gives one text one vector.
# What happens: dynamic quantisation takes one scale for the whole batch. The same row alone and beside a row with larger
#   numbers has another result (with float32 they are equal to the bit); padding rows count as well.
# Version: PyPI onnxruntime 1.32.0 (quantize_dynamic, CPU).
# Why it matters: vectors that are made in batches differ from those made one by one: an index that is built again is not
#   the same, and equal texts are not equal. Encode one text at a time, or compare with a tolerance.
set -eu; D=$(mktemp -d); trap 'rm -rf "$D"' EXIT; cd "$D"
python3 -m venv v; v/bin/pip install -q --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cat > check.py <<'EOF'
import logging

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import quantize_dynamic

logging.disable(logging.WARNING)
rng = np.random.default_rng(0)
weights = numpy_helper.from_array(rng.normal(size=(64, 32)).astype("f4"), "w")
graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 32])], [weights])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), "float.onnx")
quantize_dynamic("float.onnx", "int8.onnx")
row = rng.normal(size=(1, 64)).astype("f4")
other = (rng.normal(size=(1, 64)) * 8).astype("f4")
for name, same in (("float", True), ("int8", False)):
    session = ort.InferenceSession(name + ".onnx")
    alone = session.run(None, {"x": row})[0][0]
    in_batch = session.run(None, {"x": np.vstack([row, other])})[0][0]
    print(name, "largest difference:", float(np.abs(alone - in_batch).max()))
    assert np.allclose(alone, in_batch, atol=1e-4) == same
EOF
HOME="$D" v/bin/python check.py
