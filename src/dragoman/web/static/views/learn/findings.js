// Written by tests/browser/test_learn_findings.py from docs/lab/results: what the lab found, word for word.

export const FINDINGS = {
 "embeddings": {
  "title": "Do similar words drift together?",
  "findings": [
   {
    "claim": "Words of a group come closer than others.",
    "verdict": "holds",
    "because": "-0.001 ± 0.002 (3 seeds) before, 0.107 ± 0.005 (3 seeds) after"
   },
   {
    "claim": "A word's nearest neighbour is of its group more often.",
    "verdict": "holds",
    "because": "0.139 ± 0.058 (3 seeds) before, 0.691 ± 0.048 (3 seeds) after"
   }
  ],
  "notes": [
   "base, seed 1: of 55 words, the nearest is of its group for 18% before and 73% after.",
   "base, seed 2: of 55 words, the nearest is of its group for 16% before and 71% after.",
   "base, seed 3: of 55 words, the nearest is of its group for 7% before and 64% after."
  ]
 },
 "positions": {
  "title": "Sinusoidal, learned, single-number and no positions",
  "findings": [
   {
    "claim": "Without positions the model cannot keep the order.",
    "verdict": "holds",
    "because": "right tokens on reversal: 0.995 ± 0.001 (2 seeds) with sinusoids, 0.288 ± 0.006 (2 seeds) without positions"
   },
   {
    "claim": "Sinusoids and learned positions are nearly identical (copy).",
    "verdict": "holds",
    "because": "1.000 ± 0.000 (2 seeds) and 0.988 ± 0.003 (2 seeds)"
   },
   {
    "claim": "Sinusoids and learned positions are nearly identical (reverse).",
    "verdict": "undecided",
    "because": "0.995 ± 0.001 (2 seeds) and 0.966 ± 0.009 (2 seeds)"
   },
   {
    "claim": "A fixed offset is a fixed rotation.",
    "verdict": "holds",
    "because": "largest error 1.1e-13 in float64"
   },
   {
    "claim": "Sinusoids extrapolate beyond the training lengths.",
    "verdict": "holds",
    "because": "right tokens on copying at 18 to 24: 0.821 ± 0.012 (2 seeds) with sinusoids, 0.570 ± 0.002 (2 seeds) learned"
   }
  ],
  "notes": [
   "“index” adds the position itself, over 100, to every component: one number in place of a vector.",
   "A decoder knows where it is even without positions, as the mask lets it count; the encoder does not."
  ]
 },
 "scaling": {
  "title": "Scaled against unscaled dot products",
  "findings": [
   {
    "claim": "The variance of a dot product is d_k.",
    "verdict": "holds",
    "because": "it grows as d_k to the power of 0.998; at d_k = 512 it is 513.8"
   },
   {
    "claim": "Unscaled, the softmax's gradients become small.",
    "verdict": "does not hold here",
    "because": "at d_k = 512 the Jacobian's norm is 0.0961 unscaled, 0.1840 scaled"
   },
   {
    "claim": "Scaling by 1/√d_k helps learning at large d_k.",
    "verdict": "holds",
    "because": "steps to learn the task at d_k = 512: 32 ± 2 (3 seeds) scaled, 123 ± 28 (3 seeds) unscaled"
   }
  ],
  "notes": [
   "At d_k = 512, 1/d_k needs 61 ± 3 (3 seeds) steps and additive attention 56 ± 2 (3 seeds): the first starts with weights that are nearly uniform, the second needs no scale because its tanh bounds the scores."
  ]
 },
 "heads": {
  "title": "One head or several",
  "findings": [
   {
    "claim": "Several heads recover the resolution that averaging loses.",
    "verdict": "holds",
    "because": "right answers: 1.000 ± 0.000 (3 seeds) with eight heads, 0.578 ± 0.035 (3 seeds) with one"
   },
   {
    "claim": "Eight heads translate better than one.",
    "verdict": "holds",
    "because": "BLEU 19.44 and 13.73"
   }
  ],
  "notes": [
   "Entropy of the encoder's attention over its largest possible value: 0.001 (h = 1, seed 1), 0.085 (h = 4, seed 1), 0.136 (h = 8, seed 1), 0.244 (h = 16, seed 1). Where that of one head is the lowest, it does not blur several places into one; it looks at one of them only."
  ]
 },
 "residual": {
  "title": "Residual connections",
  "findings": [
   {
    "claim": "Residual connections help at the base depth.",
    "verdict": "holds",
    "because": "loss on the validation set: base 2.66 ± 0.01 (5 seeds), no residual 7.65; standard deviation over seeds 0.01"
   },
   {
    "claim": "And at twice the depth.",
    "verdict": "holds",
    "because": "loss on the validation set: twice as deep 2.81, twice as deep, no residual 6.87; standard deviation over seeds 0.01"
   }
  ],
  "notes": []
 },
 "norm": {
  "title": "Layer against batch normalisation",
  "findings": [
   {
    "claim": "Layer normalisation translates better.",
    "verdict": "holds",
    "because": "BLEU: base 26.13 ± 0.51 (5 seeds), batch norm 23.02 ± 1.43 (2 seeds); standard deviation over seeds 0.79"
   },
   {
    "claim": "Its loss is lower.",
    "verdict": "holds",
    "because": "loss on the validation set: base 2.66 ± 0.01 (5 seeds), batch norm 3.64 ± 0.01 (2 seeds); standard deviation over seeds 0.01"
   }
  ],
  "notes": [
   "batch norm, seed 1: nll, statistics running 3.652; nll, statistics of the batch 2.673",
   "batch norm, seed 2: nll, statistics running 3.638; nll, statistics of the batch 2.713"
  ]
 },
 "norm-order": {
  "title": "Normalisation after or before each sub-layer, with and without warm-up",
  "findings": [
   {
    "claim": "Post-norm needs the warm-up.",
    "verdict": "holds",
    "because": "loss on the validation set: post-norm, warm-up 3.43 ± 0.18 (2 seeds), post-norm, no warm-up 6.95 ± 1.91 (2 seeds); standard deviation over seeds 0.96"
   },
   {
    "claim": "Without warm-up, pre-norm is better.",
    "verdict": "holds",
    "because": "loss on the validation set: pre-norm, no warm-up 2.94 ± 0.11 (2 seeds), post-norm, no warm-up 6.95 ± 1.91 (2 seeds); standard deviation over seeds 0.96"
   }
  ],
  "notes": []
 },
 "mask": {
  "title": "The mask of the decoder, and cheating without it",
  "findings": [
   {
    "claim": "Later positions have weight 0 and no influence.",
    "verdict": "holds",
    "because": "largest weight on a later position 0, largest change of an earlier logit 0"
   },
   {
    "claim": "A decoder trained with 'no mask' cheats: its loss collapses, and so does its BLEU.",
    "verdict": "holds",
    "because": "training loss 1.51 against 3.93, BLEU 0.0 against 20.0"
   },
   {
    "claim": "A decoder trained with 'not shifted' cheats: its loss collapses, and so does its BLEU.",
    "verdict": "holds",
    "because": "training loss 1.18 against 3.93, BLEU 0.0 against 20.0"
   }
  ],
  "notes": [
   "masked and shifted, seed 1 writes: “Ein Mann mit einem orangefarbenen Hut auf dem Kopf.”",
   "no mask, seed 1 writes: “”",
   "not shifted, seed 1 writes: “zw zw zwantantant unbefestig unbefestig unbefestigigesigesigesutscheutscheutscheigesiges unbefestig unbefestigzenzenzen ”",
   "The smoothed loss of a perfect copier is not 0: ε of the probability is asked for elsewhere."
  ]
 },
 "prune": {
  "title": "Removing heads from a trained model",
  "findings": [
   {
    "claim": "Many heads can go.",
    "verdict": "holds",
    "because": "BLEU 24.1 whole, 23.1 with a quarter of 72 heads removed"
   },
   {
    "claim": "Which ones matters.",
    "verdict": "holds",
    "because": "with half removed: 19.7 by importance, 12.3 at random"
   }
  ],
  "notes": [
   "0 of 72 heads are positional and 0 attend to rare words. Nearest to it: decoder 3.6 has 49% of its weight at offset +0, encoder 2.5 puts 1.48 times their share on rare words. The table has those with a role, the eight most important, and the three nearest to each role."
  ]
 },
 "distance": {
  "title": "Recall over a distance, and the two sides of parallelism",
  "findings": [
   {
    "claim": "Over a long distance the Transformer learns what the LSTM does not.",
    "verdict": "holds",
    "because": "accuracy 500 positions back: 1.000 ± 0.000 (2 seeds) against 0.075 ± 0.002 (2 seeds); 10 back: 1.000 ± 0.000 (2 seeds) and 1.000 ± 0.000 (2 seeds)"
   },
   {
    "claim": "A training pass is quicker.",
    "verdict": "does not hold here",
    "because": "63 ms against 39 ms at 256 tokens, on one core"
   },
   {
    "claim": "Generation is one token at a time for both.",
    "verdict": "holds",
    "because": "transformer: writing takes 11.0 times a pass, lstm: writing takes 10.1 times a pass"
   }
  ],
  "notes": [
   "On one core nothing is parallel: what is left of the advantage in training is that of large matrix products."
  ]
 },
 "table1": {
  "title": "Table 1: complexity, sequential operations and path lengths of four kinds of layer",
  "findings": [
   {
    "claim": "self-attention: growth with n.",
    "verdict": "holds",
    "because": "measured n^2.11 d^0.78, predicted n^2 d^1"
   },
   {
    "claim": "self-attention: growth with d.",
    "verdict": "holds",
    "because": "measured n^2.11 d^0.78, predicted n^2 d^1"
   },
   {
    "claim": "recurrent: growth with n.",
    "verdict": "holds",
    "because": "measured n^1.00 d^1.84, predicted n^1 d^2"
   },
   {
    "claim": "recurrent: growth with d.",
    "verdict": "holds",
    "because": "measured n^1.00 d^1.84, predicted n^1 d^2"
   },
   {
    "claim": "convolution: growth with n.",
    "verdict": "holds",
    "because": "measured n^0.95 d^1.83, predicted n^1 d^2"
   },
   {
    "claim": "convolution: growth with d.",
    "verdict": "holds",
    "because": "measured n^0.95 d^1.83, predicted n^1 d^2"
   },
   {
    "claim": "restricted self-attention: growth with n.",
    "verdict": "holds",
    "because": "measured n^0.94 d^0.68, predicted n^1 d^1"
   },
   {
    "claim": "restricted self-attention: growth with d.",
    "verdict": "holds",
    "because": "measured n^0.94 d^0.68, predicted n^1 d^1"
   },
   {
    "claim": "Self-attention is faster than recurrence when n < d.",
    "verdict": "holds",
    "because": "in 11 of 11 measured cells with n < d"
   },
   {
    "claim": "Path lengths are as in the table.",
    "verdict": "holds",
    "because": "at n = 4096: self-attention 1, recurrent 4095, convolution 4095, dilated stack 9, restricted self-attention 128"
   }
  ],
  "notes": [
   "A stack of plain convolutions with a full receptive field at n = 4096 has 4095 layers: 106,628 ms by multiplication of one layer's time, not run.",
   "The fused kernel never holds the n × n weights: the same exponent of time, far less memory."
  ]
 },
 "rnn": {
  "title": "The systems that the Transformer replaced",
  "findings": [
   {
    "claim": "The Transformer is better than the best LSTM at equal steps.",
    "verdict": "does not hold here",
    "because": "BLEU: base 26.13 ± 0.51 (5 seeds), LSTM, multiplicative 27.39; standard deviation over seeds 0.51"
   },
   {
    "claim": "And at equal time.",
    "verdict": "does not hold here",
    "because": "after 140 s of one core: BLEU 23.7 against 27.6 (LSTM, multiplicative)"
   },
   {
    "claim": "Attention helps the LSTM.",
    "verdict": "holds",
    "because": "BLEU: LSTM, multiplicative 27.39, LSTM 14.68; standard deviation over seeds 0.51"
   }
  ],
  "notes": [
   "Transformer, seed 1: 162 ms a step, 91 s an epoch",
   "LSTM, seed 1: 135 ms a step, 76 s an epoch",
   "LSTM, additive, seed 1: 146 ms a step, 82 s an epoch",
   "LSTM, multiplicative, seed 1: 140 ms a step, 79 s an epoch"
  ]
 }
};
