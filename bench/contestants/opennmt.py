"""OpenNMT-py 3.5: its model, loss, statistics and Trainer, unpatched, fed with our batches."""

import logging
import warnings
from collections.abc import Iterable, Iterator

import torch

from contestants.batches import Step, padded_batch
from dragoman.data.dataset import Prepared
from shapes import Shape

warnings.filterwarnings("ignore", category=FutureWarning)  # it imports names that torch has renamed since

import onmt.opts  # noqa: E402
import pyonmttok  # noqa: E402
from onmt.constants import DefaultTokens  # noqa: E402
from onmt.model_builder import build_model  # noqa: E402
from onmt.trainer import build_trainer  # noqa: E402
from onmt.utils.logging import logger  # noqa: E402
from onmt.utils.optimizers import Optimizer  # noqa: E402
from onmt.utils.parse import ArgumentParser  # noqa: E402


class Contestant:
    def __init__(self, shape: Shape, text: Prepared) -> None:
        torch.manual_seed(1)
        logger.setLevel(logging.ERROR)
        self.text = text
        options = self.options(shape)
        vocabulary = self.vocabulary()
        vocabularies = {"src": vocabulary, "tgt": vocabulary, "data_task": "seq2seq", "decoder_start_token": "<s>"}
        model = build_model(options, options, vocabularies, None, -1)
        for name, module in model.named_modules():
            if name.endswith("feed_forward.dropout_1"):
                module.p = 0.0  # between the two products: the paper and the other contestants drop nothing there
        optimizer = Optimizer.from_opt(model, options)
        # Its own choice, torch's plain Adam, is slower on a CPU.
        optimizer._optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
        self.trainer = build_trainer(options, -1, model, vocabularies, optimizer)
        self.tokens = 0

    def options(self, shape: Shape):
        parser = ArgumentParser()
        onmt.opts.train_opts(parser)
        given = {
            "data": "{}",
            "src_vocab": "none",
            "share_vocab": None,
            "share_embeddings": None,
            "share_decoder_embeddings": None,
            "encoder_type": "transformer",
            "decoder_type": "transformer",
            "layers": shape.layers,
            "hidden_size": shape.d_model,
            "word_vec_size": shape.d_model,
            "transformer_ff": shape.d_ff,
            "heads": shape.heads,
            "dropout": shape.dropout,
            "attention_dropout": 0.0,
            "position_encoding": None,
            "param_init": 0.0,
            "param_init_glorot": None,
            "optim": "adam",
            "learning_rate": 1.0,
            "decay_method": "noam",
            "warmup_steps": 4000,
            "max_grad_norm": 0,
            "label_smoothing": 0.1,
            "normalization": "tokens",
            "batch_type": "tokens",
        }
        words = [word for name, value in given.items() for word in (f"--{name}", value) if word is not None]
        options = parser.parse_args([str(word) for word in words])
        ArgumentParser.update_model_opts(options)
        ArgumentParser.validate_model_opts(options)
        options.data = {}
        return options

    def vocabulary(self) -> pyonmttok.Vocab:
        """Our pieces under our ids, the special ones under its names."""
        tokenizer = self.text.tokenizer
        names = {
            tokenizer.pad_id: DefaultTokens.PAD,
            tokenizer.unk_id: DefaultTokens.UNK,
            tokenizer.bos_id: DefaultTokens.BOS,
            tokenizer.eos_id: DefaultTokens.EOS,
        }
        vocabulary = pyonmttok.Vocab()
        for token in range(tokenizer.vocab_size):
            vocabulary.add_token(names.get(token, tokenizer.piece(token)))
        assert len(vocabulary) == tokenizer.vocab_size, "two pieces have one name"
        vocabulary.default_id = tokenizer.unk_id
        return vocabulary

    def batches(self, steps: Iterable[Step]) -> Iterator[tuple[dict[str, torch.Tensor], int]]:
        for step in steps:
            for rows in step:
                batch = padded_batch(self.text, rows)
                self.tokens += batch.tokens
                # It takes targets whole, and cuts off the first for the labels and the last for the input itself.
                target = torch.cat((batch.target[:, :1], batch.labels), dim=1)
                lengths = (batch.source != self.text.tokenizer.pad_id).sum(dim=1)
                yield {"src": batch.source[:, :, None], "srclen": lengths, "tgt": target[:, :, None]}, 0

    def train(self, steps: Iterable[Step]) -> int:
        self.tokens = 0
        self.trainer.train(self.batches(steps), train_steps=0, save_checkpoint_steps=0, valid_steps=10**9)
        return self.tokens
