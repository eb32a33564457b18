"""An import of OPUS-MT's true size (6 + 6 layers, d_model 512, 58,101 tokens, 74 million parameters) on this machine.

    python bench/large_import.py build/bench/large --rounds 3

writes a directory as transformers would for opus-mt-en-de, with random weights (no network is needed, and speed and
memory do not depend on what was learned), imports it, and measures: the time to import and to the first translation,
with CTranslate2 and with torch; tokens a second against transformers' generate(), by turns; memory of the service; and
a fine-tuning of each kind, its speed and its peak memory. The weights are random but for the end symbol's, so that
outputs have ten to twenty tokens. Beside the time to the first translation, by turns, that of CTranslate2 alone: a
program that does nothing but load the same converted model and translate the same tokens with it.
"""

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.data.corpus import read_lines
from dragoman.importing.read import import_model
from dragoman.quickstart.tatoeba import prepare_demo
from dragoman.run_directory import default_cache
from rounds import Spread, ratios

TOKENS = 58_101
PIECES = 16_000  # of each language, as many as the demo's text gives; the rest of the vocabulary is never used
EXTRA = 30  # tokens of output beyond those of the source
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
    pieces = len(names)
    names += [f"<unused{number}>" for number in range(TOKENS - 1 - pieces)]
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
    make_it_end(model, pieces)
    model.generation_config.update(num_beams=4, max_length=512, bad_words_ids=[[TOKENS - 1]])
    model.save_pretrained(directory)


def make_it_end(model: Any, pieces: int) -> None:
    """Gives random weights outputs of some ten to twenty tokens: what is done once for a sentence, and what only an
    output without an end costs, would otherwise be measured wrongly."""
    import torch

    model.final_logits_bias[:, pieces:] = -30.0  # no text has what is beyond the pieces
    # Half of the last gains are negative, so that a token does not predict itself, by the table that both share.
    gains = torch.tensor([1.0, -1.0]).repeat(model.config.d_model // 2)
    model.model.decoder.layers[-1].final_layer_norm.weight.data.copy_(gains)
    # The end symbol is likelier from position to position: its row points to the sines that rise for 24 of them.
    angles = 24 / 10_000 ** (2 * torch.arange(model.config.d_model // 2) / model.config.d_model)
    rising = ((angles > 0.8) & (angles < torch.pi / 2)).nonzero().flatten()  # the sines are the first half of the table
    end = model.model.shared.weight.data[model.config.eos_token_id]
    end.zero_()
    end[rising] = gains[rising]


def cold_start(run: Path, engine: str) -> float:
    """Seconds from the shell to the first translation."""
    options = ["--engine", engine, "--beam", 1, "--no-repair"]
    return _seconds([sys.executable, "-m", "dragoman", "translate", run, *options])


ALONE = """
import sys, ctranslate2
model, *tokens = sys.argv[1:]
print(ctranslate2.Translator(model, device="cpu", intra_threads=0).translate_batch([tokens], beam_size=1))
"""


def cold_start_alone(run: Path) -> float:
    """The same by CTranslate2 alone: the least that any program takes."""
    [model] = (run / "ctranslate2").glob("float32-*")
    return _seconds([sys.executable, "-c", ALONE, model, "▁Two", "▁dogs", "▁play", ".", "</s>"])


def _seconds(command: Sequence[object]) -> float:
    begin = time.perf_counter()
    subprocess.run([*map(str, command)], input="Two dogs play.\n", text=True, check=True, capture_output=True)
    return time.perf_counter() - begin


class Memory(NamedTuple):
    """The most memory that a command and the processes that it starts had at a time, in gigabytes."""

    resident: float  # with the pages of mapped files and of libraries, as `top` shows it
    private: float  # what no other process and no file has

    def __str__(self) -> str:
        return f"at most {self.resident:.2f} GB resident, {self.private:.2f} GB private"


def measured(command: Sequence[object]) -> Memory:
    """Runs a command, and looks at its memory again and again."""
    import psutil

    resident = private = 0
    with subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            try:
                family = [one.memory_full_info() for one in (watched, *watched.children(recursive=True))]
                resident = max(resident, sum(one.rss for one in family))
                private = max(private, sum(one.uss for one in family))
            except psutil.Error:
                pass
            time.sleep(0.25)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {process.returncode}")
    return Memory(resident / 1e9, private / 1e9)


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
            found = model.generate(**given, num_beams=4, max_new_tokens=longest)
        return int((found != tokenizer.pad_token_id).sum())  # without the start symbol, which is the same one

    def ours(compute_type: str, scores: bool = False) -> Callable[[], int]:
        translator = Translator.load(
            run,
            engine="ctranslate2",
            compute_type=compute_type,
            beam=4,
            max_extra_length=EXTRA,  # type: ignore[arg-type]
        )
        ids = translator.tokenizer.encode_batch(sources)

        def translate() -> int:
            found = translator.engine.translate(ids, translator.search, scores=scores)
            return sum(len(hypotheses[0].ids) + 1 for hypotheses in found)

        return translate

    contestants = {
        "generate()": theirs,
        "run, float32": ours("float32"),
        "run, float32, with exact scores": ours("float32", scores=True),
        "run, int8": ours("int8"),
    }
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
    new, valid = out / "new.tsv", out / "valid.tsv"
    new.write_text("".join(f"{one}\t{other}\n" for one, other in pairs[:2000]), encoding="utf-8")
    valid.write_text("".join(f"{one}\t{other}\n" for one, other in pairs[5000:5050]), encoding="utf-8")
    for learn in LEARN:
        tuned = out / f"tuned-{learn}"
        shutil.rmtree(tuned, ignore_errors=True)
        memory = measured([
            sys.executable, "-m", "dragoman", "finetune", run, "--pairs", new, "--valid-pairs", valid, "--learn", learn,
            "--minutes", minutes, "--out", tuned, "--set", "train.valid_sentences=50", "--old", 0,
        ])  # fmt: skip
        logged = [json.loads(line) for line in read_lines(tuned / "metrics.jsonl")]
        steps = [line for line in logged if line.get("event") == "train"]
        rate = [line["tokens_per_second"] for line in steps[1:]] or [steps[0]["tokens_per_second"]]
        print(f"finetune, {learn}: {steps[-1]['step']} steps, {Spread.of(rate)} target tokens a second, {memory}")


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
    starts = {
        "without torch": lambda: cold_start(run, "ctranslate2"),
        "CTranslate2 alone": lambda: cold_start_alone(run),
        "with torch": lambda: cold_start(run, "reference"),
    }
    taken: dict[str, list[float]] = {name: [] for name in starts}
    for number in range(given.rounds + 1):
        for name, start in starts.items():
            seconds = start()
            if number:  # the first round converts, and fills the disk's cache
                taken[name].append(seconds)
    for name, values in taken.items():
        print(f"first translation, {name}: {Spread.of(values)} s", flush=True)
    found = speeds(directory, run, sources, given.rounds)
    for name, values in found.items():
        against = f", {ratios(values, found['generate()'])} of generate()" if name != "generate()" else ""
        print(f"{name}: {Spread.of(values)} target tokens a second{against}", flush=True)
    first, memory = service(run, given.port, sources)
    print(f"serve: {first:.1f} s to the first answer, {memory:.2f} GB", flush=True)
    fine_tunings(run, pairs, given.out, given.minutes)


if __name__ == "__main__":
    main()
