"""A model that transformers trained, imported as a run: is it the same, and what can be done with it?

    python bench/public_model.py train build/bench/hf --minutes 20    # by transformers alone, on the demo's sentences
    dragoman import build/bench/hf --out build/bench/imported
    python bench/public_model.py compare build/bench/hf build/bench/imported

`train` makes a Marian model as OPUS-MT's are configured, at a small size: swish, biases, one vocabulary over two
sentencepiece models, `<pad>` as start symbol. It needs the package accelerate beside transformers. `compare` translates
the demo's test sentences with transformers' generate() and with the run, both engines, and scores them.
"""

import argparse
import io
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sacrebleu

from dragoman.data.corpus import read_lines
from dragoman.quickstart.tatoeba import prepare_demo
from dragoman.run_directory import default_cache
from dragoman.translation.translator import Translator

PIECES = 2500  # of each language
LANGUAGES = ("en", "fr")


def write_tokenizer(directory: Path, pairs: Sequence[tuple[str, str]]) -> None:
    """source.spm, target.spm, and vocab.json with the pieces of both, as OPUS-MT's directories have them."""
    import sentencepiece

    names = ["</s>", "<unk>"]
    for name, lines in (("source", [pair[0] for pair in pairs]), ("target", [pair[1] for pair in pairs])):
        written = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=written, vocab_size=PIECES, model_type="unigram",
            bos_id=-1, eos_id=0, unk_id=1, minloglevel=2,
        )  # fmt: skip
        (directory / f"{name}.spm").write_bytes(written.getvalue())
        model = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
        names += [piece for piece in map(model.id_to_piece, range(model.vocab_size())) if piece not in names]
    names.append("<pad>")
    vocabulary = {name: index for index, name in enumerate(names)}
    settings = {
        "tokenizer_class": "MarianTokenizer", "model_max_length": 512, "separate_vocabs": False,
        "source_lang": LANGUAGES[0], "target_lang": LANGUAGES[1],
    }  # fmt: skip
    (directory / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    (directory / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")


def train(directory: Path, minutes: float, seed: int, threads: int) -> None:
    """Trains with transformers alone, until each of its threads has worked for these minutes."""
    import torch
    import transformers

    directory.mkdir(parents=True, exist_ok=True)
    lines = read_lines(prepare_demo(default_cache()).train)
    pairs = [(source, target) for source, target in (line.split("\t")[:2] for line in lines)]
    write_tokenizer(directory, pairs)
    tokenizer = transformers.MarianTokenizer.from_pretrained(directory)
    pad = tokenizer.pad_token_id
    config = transformers.MarianConfig(
        vocab_size=len(tokenizer.encoder), d_model=192, encoder_layers=3, decoder_layers=2, encoder_ffn_dim=768,
        decoder_ffn_dim=768, encoder_attention_heads=8, decoder_attention_heads=8, activation_function="swish",
        scale_embedding=True, pad_token_id=pad, eos_token_id=0, bos_token_id=0, decoder_start_token_id=pad,
        max_position_embeddings=512, static_position_embeddings=True, dropout=0.1,
    )  # fmt: skip
    transformers.set_seed(seed)
    model = transformers.MarianMTModel(config)
    model.generation_config.update(num_beams=4, max_length=512, bad_words_ids=[[pad]], decoder_start_token_id=pad)
    encoded = tokenizer([pair[0] for pair in pairs], text_target=[pair[1] for pair in pairs])
    examples = [
        {"input_ids": source, "labels": target}
        for source, target in zip(encoded["input_ids"], encoded["labels"], strict=True)
    ]
    ends = time.process_time() + 60 * minutes * threads  # not by the clock: other programs may use the cores as well

    class UntilTime(transformers.TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, _args: Any, _state: Any, control: Any, **_: Any) -> Any:
            control.should_training_stop = time.process_time() > ends
            return control

    settings = transformers.Seq2SeqTrainingArguments(
        output_dir=str(directory / "checkpoints"), per_device_train_batch_size=64, num_train_epochs=100,
        learning_rate=1.5e-3, warmup_steps=400, lr_scheduler_type="inverse_sqrt",
        train_sampling_strategy="group_by_length",
        save_strategy="no", report_to=[], logging_steps=100, use_cpu=True, seed=seed, adam_beta2=0.98, max_grad_norm=0,
    )  # fmt: skip
    torch.set_num_threads(threads)
    trainer = transformers.Seq2SeqTrainer(
        model=model, args=settings, train_dataset=examples, callbacks=[UntilTime()],
        data_collator=transformers.DataCollatorForSeq2Seq(tokenizer, model=model),
    )  # fmt: skip
    trainer.train()
    model.save_pretrained(directory)


def generated(directory: Path, sources: Sequence[str], beam: int) -> list[str]:
    """What generate() makes of the sentences, as the directory asks for it but for the beam."""
    import torch
    import transformers

    tokenizer = transformers.MarianTokenizer.from_pretrained(directory)
    model = transformers.MarianMTModel.from_pretrained(directory).eval()
    order = sorted(range(len(sources)), key=lambda index: len(sources[index]))
    found: dict[int, str] = {}
    for start in range(0, len(order), 32):
        batch = order[start : start + 32]
        with torch.inference_mode():
            given = tokenizer([sources[i] for i in batch], return_tensors="pt", padding=True)
            ids = model.generate(**given, num_beams=beam)
        found.update(zip(batch, tokenizer.batch_decode(ids, skip_special_tokens=True), strict=True))
    return [found[index] for index in range(len(sources))]


def compare(directory: Path, run: Path, count: int) -> None:
    data = prepare_demo(default_cache())
    sources = list(read_lines(data.test_source))[:count]
    references = [list(read_lines(path))[:count] for path in data.test_references]
    for beam in (1, 4):
        outputs = {"generate()": generated(directory, sources, beam)}
        for engine in ("reference", "ctranslate2"):
            translator = Translator.load(run, engine=engine, beam=beam)  # type: ignore[arg-type]
            stream = translator.translate_stream(sources, scores=False, whole=True, protect=False, repair=False)
            outputs[f"run, {engine}"] = [translation.text for translation in stream]
        for name, lines in outputs.items():
            same = sum(ours == theirs for ours, theirs in zip(lines, outputs["generate()"], strict=True))
            bleu = sacrebleu.corpus_bleu(lines, references)
            print(f"beam {beam}  {name:<18} {bleu.score:6.2f} BLEU, {same:,} of {len(lines):,} as generate()'s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    training = commands.add_parser("train")
    training.add_argument("directory", type=Path)
    training.add_argument("--minutes", type=float, default=20)
    training.add_argument("--seed", type=int, default=1)
    training.add_argument("--threads", type=int, default=2)
    comparing = commands.add_parser("compare")
    comparing.add_argument("directory", type=Path)
    comparing.add_argument("run", type=Path)
    comparing.add_argument("--count", type=int, default=1000)
    given = parser.parse_args()
    if given.command == "train":
        train(given.directory, given.minutes, given.seed, given.threads)
    else:
        compare(given.directory, given.run, given.count)


if __name__ == "__main__":
    main()
