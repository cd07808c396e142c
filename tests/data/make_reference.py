#!/usr/bin/env python3
"""Makes reference_llama.safetensors and reference_gpt.safetensors, which the tests of the runtime read.

One training step of two small models in PyTorch, fp32 on the CPU: the initial weights, the batch, the loss, the gradient norm, the
gradient of every weight, and the weights after clipping and AdamW. The models are written out here, so that the reference shares nothing
with Capstan but the names and layouts of docs/plan-format.md.

    python3 tests/data/make_reference.py tests/data
"""
import json
import math
import struct
import sys

import torch
import torch.nn.functional as F

DIMS = dict(layers=2, hidden=16, heads=4, head_dim=8, ffn=24, vocab=40, padded=48, seq=12, micro_batch=3, micro_batches=2)
ADAM = dict(lr=2e-3, beta1=0.9, beta2=0.95, eps=1e-8, weight_decay=0.1, clip=0.5)


def write_safetensors(path, tensors, metadata):
    kinds = {torch.float32: "F32", torch.int32: "I32"}
    header, blobs, at = {"__metadata__": metadata}, [], 0
    for name in sorted(tensors):
        tensor = tensors[name].detach().contiguous()
        blob = tensor.numpy().tobytes()
        header[name] = {"dtype": kinds[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + len(blob)]}
        at += len(blob)
        blobs.append(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def rotate(x, base=10000.0):
    """x: [batch, seq, heads, head_dim]; pairs (i, i + head_dim / 2)."""
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[1]).float()[:, None] * base ** (-torch.arange(half).float() / half)[None, :]
    cos, sin = angle.cos()[None, :, None, :], angle.sin()[None, :, None, :]
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class Model:
    def __init__(self, gpt, seed):
        self.gpt = gpt
        self.kv = DIMS["heads"] if gpt else DIMS["heads"] // 2
        d = DIMS
        generator = torch.Generator().manual_seed(seed)
        self.weights, self.decays = {}, {}

        def matrix(name, *shape):
            self.weights[name] = torch.randn(*shape, generator=generator) * 0.2
            self.decays[name] = True

        def vector(name, size, around):
            self.weights[name] = around + torch.randn(size, generator=generator) * 0.1
            self.decays[name] = False

        matrix("embedding.word.weight", d["padded"], d["hidden"])
        if gpt:
            matrix("embedding.position.weight", d["seq"], d["hidden"])
        norms = [f"layer.{i}.{half}.norm" for i in range(d["layers"]) for half in ("attn", "mlp")] + ["final_norm"]
        for name in norms:
            vector(name + ".weight", d["hidden"], 1.0)
            if gpt:
                vector(name + ".bias", d["hidden"], 0.0)
        for i in range(d["layers"]):
            linears = {
                f"layer.{i}.attn.qkv": ((d["heads"] + 2 * self.kv) * d["head_dim"], d["hidden"]),
                f"layer.{i}.attn.proj": (d["hidden"], d["heads"] * d["head_dim"]),
                f"layer.{i}.mlp.fc1": (d["ffn"] if gpt else 2 * d["ffn"], d["hidden"]),
                f"layer.{i}.mlp.fc2": (d["hidden"], d["ffn"]),
            }
            for name, shape in linears.items():
                matrix(name + ".weight", *shape)
                if gpt:
                    vector(name + ".bias", shape[0], 0.0)
        if gpt:
            matrix("head.weight", d["padded"], d["hidden"])
        for weight in self.weights.values():
            weight.requires_grad_(True)

    def norm(self, x, name):
        w = self.weights
        if self.gpt:
            return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], 1e-5)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * w[name + ".weight"]

    def linear(self, x, name):
        return F.linear(x, self.weights[name + ".weight"], self.weights.get(name + ".bias"))

    def attention(self, x, name):
        d = DIMS
        batch, seq = x.shape[:2]
        heads, kv, size = d["heads"], self.kv, d["head_dim"]
        q, k, v = self.linear(x, name + ".qkv").view(batch, seq, heads + 2 * kv, size).split([heads, kv, kv], dim=2)
        if not self.gpt:
            q, k = rotate(q), rotate(k)
        k, v = (t.repeat_interleave(heads // kv, dim=2) for t in (k, v))
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(size)
        hidden = torch.triu(torch.ones(seq, seq, dtype=torch.bool), diagonal=1)
        core = scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v
        return self.linear(core.transpose(1, 2).reshape(batch, seq, heads * size), name + ".proj")

    def mlp(self, x, name):
        inner = self.linear(x, name + ".fc1")
        if self.gpt:
            inner = F.gelu(inner)
        else:
            gate, up = inner.chunk(2, dim=-1)
            inner = F.silu(gate) * up
        return self.linear(inner, name + ".fc2")

    def loss(self, batch):
        x = self.weights["embedding.word.weight"][batch[:, :-1].long()]
        if self.gpt:
            x = x + self.weights["embedding.position.weight"][None]
        for i in range(DIMS["layers"]):
            x = x + self.attention(self.norm(x, f"layer.{i}.attn.norm"), f"layer.{i}.attn")
            x = x + self.mlp(self.norm(x, f"layer.{i}.mlp.norm"), f"layer.{i}.mlp")
        x = self.norm(x, "final_norm")
        head = self.weights["head.weight" if self.gpt else "embedding.word.weight"]
        logits = F.linear(x, head)[..., : DIMS["vocab"]]
        return F.cross_entropy(logits.reshape(-1, DIMS["vocab"]), batch[:, 1:].reshape(-1).long())


def reference(gpt, seed, path):
    model = Model(gpt, seed)
    d = DIMS
    batch = torch.randint(0, d["vocab"], (d["micro_batches"], d["micro_batch"], d["seq"] + 1),
                          generator=torch.Generator().manual_seed(seed + 1), dtype=torch.int32)
    out = {"batch_tokens": batch}
    out.update({name: weight.detach().clone() for name, weight in model.weights.items()})
    loss = torch.stack([model.loss(micro) for micro in batch]).mean()
    loss.backward()
    out.update({name + ".grad": weight.grad.clone() for name, weight in model.weights.items()})
    out["loss"] = loss.detach().reshape(1)
    names = list(model.weights)
    groups = [{"params": [model.weights[n] for n in names if model.decays[n] == decays],
               "weight_decay": ADAM["weight_decay"] if decays else 0.0} for decays in (True, False)]
    optimizer = torch.optim.AdamW(groups, lr=ADAM["lr"], betas=(ADAM["beta1"], ADAM["beta2"]), eps=ADAM["eps"])
    norm = torch.nn.utils.clip_grad_norm_(list(model.weights.values()), ADAM["clip"])
    assert norm > ADAM["clip"], "the reference is to see clipping"
    out["grad_norm"] = norm.detach().reshape(1)
    optimizer.step()
    out.update({name + ".after": weight.detach() for name, weight in model.weights.items()})
    write_safetensors(path, out, {"torch": torch.__version__, "model": "gpt" if gpt else "llama"})
    print(path, "loss", loss.item(), "gradient norm", norm.item())


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else "tests/data"
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    reference(False, 11, folder + "/reference_llama.safetensors")
    reference(True, 12, folder + "/reference_gpt.safetensors")
