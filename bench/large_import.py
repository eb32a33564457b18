"""An import of OPUS-MT's true size (6 + 6 layers, d_model 512, 58,101 tokens, 77 million parameters) on this machine.

    python bench/large_import.py build/bench/large --rounds 3

writes a directory as transformers would for opus-mt-en-de, with random weights (no network is needed, and speed and
memory do not depend on what was learned), imports it, and measures: the time to import and to the first translation,
with CTranslate2 and with torch; tokens a second against transformers' generate(), by turns; memory of the service; and
a fine-tuning of each kind, its speed and its peak memory. Random models do not end their outputs, so all of them are as
long as the search allows, for us and for generate() alike.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dragoman.data.corpus import read_lines
from dragoman.importing.read import import_model
from dragoman.quickstart.tatoeba import prepare_demo
from dragoman.run_directory import default_cache
from rounds import Spread, ratios

TOKENS = 58_101
PIECES = 16_000  # of each language, as many as the demo's text gives; the rest of the vocabulary is never used
EXTRA = 10  # tokens of output beyond those of the source
SENTENCES = 64
LEARN = ("all", "top", "low-rank")


def write_directory(directory: Path, pairs: Sequence[Sequence[str]]) -> None:
    import sentencepiece
    import torch
    import transformers

    directory.mkdir(parents=True)
    names = ["</s>", "<unk>"]
    for number, side in enumerate(("source", "target")):
        written = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([pair[number] for pair in pairs]), model_writer=written, vocab_size=PIECES,
            model_type="unigram", bos_id=-1, eos_id=0, unk_id=1, minloglevel=2, hard_vocab_limit=False,
        )  # fmt: skip
        (directory / f"{side}.spm").write_bytes(written.getvalue())
        model = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
        known = set(names)
        names += [piece for piece in map(model.id_to_piece, range(model.vocab_size())) if piece not in known]
    names += [f"<unused{number}>" for number in range(TOKENS - 1 - len(names))]
    vocabulary = {name: number for number, name in enumerate([*names, "<pad>"])}
    (directory / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    settings = {"tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "fr"}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    torch.manual_seed(1)
    config = transformers.MarianConfig(
        vocab_size=TOKENS, d_model=512, encoder_layers=6, decoder_layers=6, encoder_ffn_dim=2048, decoder_ffn_dim=2048,
        encoder_attention_heads=8, decoder_attention_heads=8, activation_function="swish", scale_embedding=True,
        pad_token_id=TOKENS - 1, eos_token_id=0, bos_token_id=0, decoder_start_token_id=TOKENS - 1, dropout=0.1,
        max_position_embeddings=512, static_position_embeddings=True,
    )  # fmt: skip
    model = transformers.MarianMTModel(config)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.02)
    model.final_logits_bias.normal_(std=0.02)
    model.generation_config.update(num_beams=4, max_length=512, bad_words_ids=[[TOKENS - 1]])
    model.save_pretrained(directory)


def cold_start(run: Path, engine: str) -> float:
    """Seconds from the shell to the first translation."""
    begin = time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "dragoman",
        "translate",
        str(run),
        "--engine",
        engine,
        "--beam",
        "1",
        "--no-repair",
    ]
    subprocess.run(command, input="Two dogs play.\n", text=True, check=True, capture_output=True)
    return time.perf_counter() - begin


def measured(command: Sequence[object]) -> tuple[float, float]:
    """Seconds and peak gigabytes of a command and of the processes that it starts, each of which is looked at."""
    import psutil

    begin, peak = time.perf_counter(), 0
    with subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            try:
                family = [watched, *watched.children(recursive=True)]
                peak = max(peak, sum(one.memory_full_info().pss for one in family))
            except psutil.Error:
                pass
            time.sleep(0.5)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {process.returncode}")
    return time.perf_counter() - begin, peak / 1e9


def speeds(directory: Path, run: Path, sources: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """Target tokens a second of all contestants, by turns."""
    import torch
    import transformers

    from dragoman.translation.translator import Translator

    torch.set_num_threads(os.cpu_count() or 1)
    tokenizer = transformers.MarianTokenizer.from_pretrained(directory)
    model = transformers.MarianMTModel.from_pretrained(directory).eval()
    given = tokenizer(list(sources), return_tensors="pt", padding=True)
    longest = int(given["attention_mask"].sum(1).max()) - 1 + EXTRA

    def theirs() -> int:
        with torch.inference_mode():
            found = model.generate(**given, num_beams=4, max_new_tokens=longest, min_new_tokens=longest)
        return int(found.shape[0] * longest)

    def ours(compute_type: str) -> Callable[[], int]:
        translator = Translator.load(
            run,
            engine="ctranslate2",
            compute_type=compute_type,
            beam=4,
            max_extra_length=EXTRA,  # type: ignore[arg-type]
        )
        ids = translator.tokenizer.encode_batch(sources)

        def translate() -> int:
            return sum(len(found[0].ids) for found in translator.engine.translate(ids, translator.search))

        return translate

    contestants = {"generate()": theirs, "run, float32": ours("float32"), "run, int8": ours("int8")}
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):
        for name, translate in contestants.items():
            begin = time.perf_counter()
            tokens = translate()
            if number:  # the first round loads and warms up
                found[name].append(tokens / (time.perf_counter() - begin))
    return found


def service(run: Path, port: int, sources: Sequence[str]) -> tuple[float, float]:
    """Seconds until the service answers its first request, and gigabytes after some requests."""
    import psutil

    begin = time.perf_counter()
    command = [sys.executable, "-m", "dragoman", "serve", "--pair", f"en-fr={run}", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:

            def ask(text: str) -> None:
                content = json.dumps({"q": text, "source": "en", "target": "fr"}).encode()
                request = urllib.request.Request(
                    f"http://127.0.0.1:{port}/translate", content, {"Content-Type": "application/json"}
                )
                urllib.request.urlopen(request, timeout=120).read()

            while True:
                try:
                    ask("Two dogs play.")
                    break
                except OSError:
                    if process.poll() is not None or time.perf_counter() - begin > 120:
                        raise
                    time.sleep(0.05)
            first = time.perf_counter() - begin
            for text in sources[:8]:
                ask(text)
            return first, psutil.Process(process.pid).memory_full_info().pss / 1e9
        finally:
            process.terminate()


def fine_tunings(run: Path, pairs: Sequence[Sequence[str]], out: Path, minutes: float) -> None:
    new, general = out / "new.tsv", out / "general.txt"
    new.write_text("".join(f"{one}\t{other}\n" for one, other in pairs[:2000]), encoding="utf-8")
    for learn in LEARN:
        command: list[Any] = [
            sys.executable, "-m", "dragoman", "finetune", run, "--pairs", new, "--learn", learn, "--minutes", minutes,
            "--out", out / f"tuned-{learn}", "--set", "train.valid_steps=1000000", "--old", 0,
        ]  # fmt: skip
        _, peak = measured(command)
        logged = [json.loads(line) for line in read_lines(out / f"tuned-{learn}" / "metrics.jsonl")]
        steps = [line for line in logged if line.get("event") == "train"]
        rate = [line["tokens_per_second"] for line in steps[1:]] or [steps[0]["tokens_per_second"]]
        print(f"finetune, {learn}: {Spread.of(rate)} target tokens a second, at most {peak:.2f} GB", flush=True)
    general.unlink(missing_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=1.5, help="of each fine-tuning")
    parser.add_argument("--port", type=int, default=5077)
    given = parser.parse_args()
    directory, run = given.out / "opus-mt-en-fr", given.out / "run"
    demo = prepare_demo(default_cache())
    pairs = [line.split("\t")[:2] for line in read_lines(demo.train)]
    sources = list(read_lines(demo.test_source))[:SENTENCES]
    if not directory.exists():
        write_directory(directory, pairs)
    begin = time.perf_counter()
    if not run.exists():
        import_model(directory, run, ("en", "fr"))
        print(f"import: {time.perf_counter() - begin:.1f} s", flush=True)
    for engine, name in (("ctranslate2", "without torch"), ("reference", "with torch")):
        cold_start(run, engine)  # converts, and fills the disk's cache
        starts = Spread.of([cold_start(run, engine) for _ in range(given.rounds)])
        print(f"first translation, {name}: {starts} s", flush=True)
    found = speeds(directory, run, sources, given.rounds)
    for name, values in found.items():
        against = f", {ratios(values, found['generate()'])} of generate()" if name != "generate()" else ""
        print(f"{name}: {Spread.of(values)} target tokens a second{against}", flush=True)
    first, memory = service(run, given.port, sources)
    print(f"serve: {first:.1f} s to the first answer, {memory:.2f} GB", flush=True)
    fine_tunings(run, pairs, given.out, given.minutes)


if __name__ == "__main__":
    main()
