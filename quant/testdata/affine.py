"""Writes affine.json: matrices quantised and dequantised by mlx itself (pip install "mlx[cpu]" numpy).

For every type, bits and group: the codes, scales and biases of mx.quantize on the CPU, and the SHA-256
of what mx.dequantize makes of them in float32, little-endian. With bf16 and f16 scales that is scale*q + bias rounded
once; with f32 scales mlx on the CPU rounds the product too, so those decode in numpy's float64.
"""
import base64, hashlib, json
import mlx.core as mx
import numpy as np

mx.set_default_device(mx.cpu)
ROWS, COLS = 7, 128
DTYPES = {"bf16": mx.bfloat16, "f16": mx.float16, "f32": mx.float32}


def weights():
    rng = np.random.default_rng(20)
    w = rng.standard_normal((ROWS, COLS)).astype(np.float32)
    w[1] = 0                      # zeros alone
    w[2] = np.abs(w[2]) + 0.5     # zero lies outside
    w[3] = -np.abs(w[3]) - 0.25
    w[4] = 0.0371                 # all equal
    w[5] = rng.integers(-16, 16, COLS) / 2  # ties
    w[6] *= 1e-6                  # the least scale
    w[6, 5::32] = 3
    return w


def raw(a):
    if a.dtype == mx.bfloat16:
        a = a.view(mx.uint16)
    return np.array(a).tobytes()


def text(data):
    return base64.b64encode(data).decode()


def decoded(q, s, b, group, bits):
    if s.dtype != mx.float32:
        return np.array(mx.dequantize(q, s.astype(mx.float32), b.astype(mx.float32), group_size=group, bits=bits))
    codes = mx.dequantize(q, mx.ones_like(s), mx.zeros_like(b), group_size=group, bits=bits)
    wide = lambda a: np.repeat(np.array(a).astype(np.float64), group, axis=1)
    return (wide(s) * np.array(codes) + wide(b)).astype(np.float32)


out = {"rows": ROWS, "cols": COLS, "weights": {}, "cases": []}
for name, dtype in DTYPES.items():
    w = mx.array(weights()).astype(dtype)
    out["weights"][name] = text(raw(w))
    for bits in (2, 3, 4, 5, 6, 8):
        for group in (32, 64, 128):
            q, s, b = mx.quantize(w, group_size=group, bits=bits)
            out["cases"].append({
                "type": name, "bits": bits, "group": group,
                "codes": text(raw(q)), "scales": text(raw(s)), "biases": text(raw(b)),
                "decoded": hashlib.sha256(decoded(q, s, b, group, bits).tobytes()).hexdigest(),
            })
with open("affine.json", "w") as f:
    f.write(json.dumps(out).replace('{"type"', '\n{"type"') + "\n")
