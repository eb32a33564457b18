// Written by tests/browser/test_learn_findings.py from docs/lab/results: what the lab found, word for word.

export const FINDINGS = {
 "embeddings": {
  "title": "Do similar words drift together?",
  "headline": "All of 2 findings hold.",
  "findings": [
   {
    "claim": "Words of a group come closer than others.",
    "verdict": "holds",
    "because": "after 0.107 ± 0.005 (3 seeds), before -0.001 ± 0.002 (3 seeds); differences +0.105, +0.111, +0.110",
    "effect": 0.108684,
    "low": 0.100027,
    "high": 0.117341,
    "unit": "cosine"
   },
   {
    "claim": "A word's nearest neighbour is of its group more often.",
    "verdict": "holds",
    "because": "after 0.691 ± 0.048 (3 seeds), before 0.139 ± 0.058 (3 seeds); differences +0.545, +0.545, +0.564",
    "effect": 0.551515,
    "low": 0.525438,
    "high": 0.577592,
    "unit": "of the words"
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
  "headline": "4 of 8 findings hold; undecided: 4 of them.",
  "findings": [
   {
    "claim": "Without positions the model cannot reverse.",
    "verdict": "holds",
    "because": "sinusoids 0.995 ± 0.001 (2 seeds), none 0.288 ± 0.006 (2 seeds)",
    "effect": 0.706062,
    "low": 0.657535,
    "high": 0.75459,
    "unit": "of the tokens right more"
   },
   {
    "claim": "Without positions the model cannot copy.",
    "verdict": "holds",
    "because": "sinusoids 1.000 ± 0.000 (2 seeds), none 0.280 ± 0.013 (2 seeds)",
    "effect": 0.719551,
    "low": 0.605117,
    "high": 0.833985,
    "unit": "of the tokens right more"
   },
   {
    "claim": "One number for the position will not do for reversal.",
    "verdict": "holds",
    "because": "sinusoids 0.995 ± 0.001 (2 seeds), index 0.288 ± 0.000 (2 seeds)",
    "effect": 0.706205,
    "low": 0.703562,
    "high": 0.708848,
    "unit": "of the tokens right more"
   },
   {
    "claim": "Sinusoids and learned positions are nearly identical (copy).",
    "verdict": "undecided",
    "because": "sinusoids 1.000 ± 0.000 (2 seeds), learned 0.988 ± 0.003 (2 seeds); nearly the same is ± 0.03",
    "effect": 0.0116629,
    "low": -0.0176591,
    "high": 0.0409849,
    "unit": "of the tokens right"
   },
   {
    "claim": "Sinusoids and learned positions are nearly identical (reverse).",
    "verdict": "undecided",
    "because": "sinusoids 0.995 ± 0.001 (2 seeds), learned 0.966 ± 0.009 (2 seeds); nearly the same is ± 0.03",
    "effect": 0.0288553,
    "low": -0.049246,
    "high": 0.106957,
    "unit": "of the tokens right"
   },
   {
    "claim": "A fixed offset is a fixed rotation.",
    "verdict": "holds",
    "because": "largest error 1.1e-13 in float64",
    "effect": 1.13624e-13,
    "low": null,
    "high": null,
    "unit": ""
   },
   {
    "claim": "Beyond the training lengths sinusoids copy better than learned positions.",
    "verdict": "undecided",
    "because": "sinusoids 0.821 ± 0.012 (2 seeds), learned 0.570 ± 0.002 (2 seeds); “holds” before the correction for 7 comparisons",
    "effect": 0.250322,
    "low": 0.161695,
    "high": 0.338949,
    "unit": "of the tokens right more"
   },
   {
    "claim": "Beyond the training lengths sinusoids still copy well: at least 0.9 right.",
    "verdict": "undecided",
    "because": "at 18 to 24 0.821 ± 0.012 (2 seeds), asked 0.900 ± 0.000 (2 seeds); differences -0.088, -0.071",
    "effect": -0.0793873,
    "low": -0.184444,
    "high": 0.0256698,
    "unit": "of the tokens right"
   }
  ],
  "notes": [
   "“index” adds the position itself, over 100, to every component: one number in place of a vector.",
   "A decoder knows where it is even without positions, as the mask lets it count; the encoder does not."
  ]
 },
 "scaling": {
  "title": "Scaled against unscaled dot products",
  "headline": "12 of 15 findings hold; not seen here: “Training, d_k = 512: early gradients are larger with the scale”; undecided: “Training, d_k = 512: unscaled, the loss stands still in the first 100 steps” and “Training, d_k = 4: the scale changes little”.",
  "findings": [
   {
    "claim": "The variance of a dot product is d_k.",
    "verdict": "holds",
    "because": "it grows as d_k to the power of 0.999",
    "effect": 0.998788,
    "low": 0.991942,
    "high": 1.00563,
    "unit": "exponent"
   },
   {
    "claim": "d_k = 512, 8 keys: unscaled, the softmax's gradients become small (median).",
    "verdict": "holds",
    "because": "scaled 0.3672 ± 0.0015 (5 seeds), unscaled 0.0001 ± 0.0000 (5 seeds)",
    "effect": 8393.33,
    "low": 1733.15,
    "high": 40647.3,
    "unit": "times"
   },
   {
    "claim": "d_k = 512, 8 keys: unscaled, more rows are dead.",
    "verdict": "holds",
    "because": "unscaled 0.720 ± 0.040 (5 seeds), scaled 0.000 ± 0.000 (5 seeds)",
    "effect": 0.720312,
    "low": 0.67066,
    "high": 0.769964,
    "unit": "of the rows more"
   },
   {
    "claim": "d_k = 512, 64 keys: unscaled, the softmax's gradients become small (median).",
    "verdict": "holds",
    "because": "scaled 0.1807 ± 0.0013 (5 seeds), unscaled 0.0034 ± 0.0017 (5 seeds)",
    "effect": 66.8445,
    "low": 21.8526,
    "high": 204.47,
    "unit": "times"
   },
   {
    "claim": "d_k = 512, 64 keys: unscaled, more rows are dead.",
    "verdict": "holds",
    "because": "unscaled 0.559 ± 0.032 (5 seeds), scaled 0.000 ± 0.000 (5 seeds)",
    "effect": 0.559372,
    "low": 0.520206,
    "high": 0.598538,
    "unit": "of the rows more"
   },
   {
    "claim": "d_k = 512, 512 keys: unscaled, the softmax's gradients become small (median).",
    "verdict": "holds",
    "because": "scaled 0.0699 ± 0.0003 (5 seeds), unscaled 0.0245 ± 0.0097 (5 seeds)",
    "effect": 3.15733,
    "low": 1.57251,
    "high": 6.33939,
    "unit": "times"
   },
   {
    "claim": "d_k = 512, 512 keys: unscaled, more rows are dead.",
    "verdict": "holds",
    "because": "unscaled 0.437 ± 0.039 (5 seeds), scaled 0.000 ± 0.000 (5 seeds)",
    "effect": 0.437498,
    "low": 0.388513,
    "high": 0.486483,
    "unit": "of the rows more"
   },
   {
    "claim": "At d_k = 4 the scale changes little (64 keys, median).",
    "verdict": "holds",
    "because": "scaled 0.1727 ± 0.0033 (5 seeds), unscaled 0.2620 ± 0.0064 (5 seeds); nearly the same is a factor of 2",
    "effect": 0.659047,
    "low": 0.638265,
    "high": 0.680506,
    "unit": "times"
   },
   {
    "claim": "Training, d_k = 512: early gradients are larger with the scale.",
    "verdict": "does not hold here",
    "because": "scaled 0.2359 ± 0.0189 (5 seeds), unscaled 1.9957 ± 0.2570 (5 seeds)",
    "effect": 0.118741,
    "low": 0.100144,
    "high": 0.140791,
    "unit": "times"
   },
   {
    "claim": "Training, d_k = 512: the scale saves steps, each way at its own best rate.",
    "verdict": "holds",
    "because": "steps unscaled at 0.003 142 ± 45 (5 seeds), scaled at 0.01 22 ± 2 (5 seeds)",
    "effect": 6.37086,
    "low": 4.46985,
    "high": 9.08037,
    "unit": "times"
   },
   {
    "claim": "Training, d_k = 512: unscaled, the loss stands still in the first 100 steps.",
    "verdict": "undecided",
    "because": "unscaled after 100 steps 1.44 ± 0.35 (5 seeds), half of a guess 1.15 ± 0.00 (5 seeds)",
    "effect": 0.288047,
    "low": -0.146256,
    "high": 0.722351,
    "unit": "nats more"
   },
   {
    "claim": "Training, d_k = 4: the scale changes little.",
    "verdict": "undecided",
    "because": "steps unscaled 46 ± 5 (5 seeds), scaled 41 ± 3 (5 seeds); nearly the same is a factor of 1.25",
    "effect": 1.11495,
    "low": 0.98085,
    "high": 1.26739,
    "unit": "times"
   },
   {
    "claim": "Training, d_k = 512: 1/d_k over-corrects.",
    "verdict": "holds",
    "because": "steps by 1/d_k 63 ± 3 (5 seeds), by 1/√d_k 33 ± 3 (5 seeds)",
    "effect": 1.89447,
    "low": 1.70486,
    "high": 2.10517,
    "unit": "times"
   },
   {
    "claim": "In trained heads the components of queries have unit variance.",
    "verdict": "holds",
    "because": "variance 1.00 ± 0.06 (5 seeds), assumed 1.00 ± 0.00 (5 seeds); nearly the same is ± 0.5",
    "effect": 0.000442344,
    "low": -0.067914,
    "high": 0.0687987,
    "unit": "variance"
   },
   {
    "claim": "In trained heads the components of keys have unit variance.",
    "verdict": "holds",
    "because": "variance 1.06 ± 0.05 (5 seeds), assumed 1.00 ± 0.00 (5 seeds); nearly the same is ± 0.5",
    "effect": 0.0611049,
    "low": 0.00337981,
    "high": 0.11883,
    "unit": "variance"
   }
  ],
  "notes": [
   "At d_k = 512 with 8 keys the mean of the unscaled Jacobian's norm is 0.0573, its median 0.0001: few rows with two keys near the top make the mean, so the median is judged.",
   "At d_k = 512 with 64 keys the mean of the unscaled Jacobian's norm is 0.0855, its median 0.0034: few rows with two keys near the top make the mean, so the median is judged.",
   "At d_k = 512 with 512 keys the mean of the unscaled Jacobian's norm is 0.1161, its median 0.0245: few rows with two keys near the top make the mean, so the median is judged."
  ]
 },
 "heads": {
  "title": "One head or several",
  "headline": "1 of 4 findings holds; not measured yet: 3 of them.",
  "findings": [
   {
    "claim": "Several heads recover the resolution that averaging loses.",
    "verdict": "holds",
    "because": "h = 8 1.000 ± 0.000 (3 seeds), h = 1 0.578 ± 0.035 (3 seeds)",
    "effect": 0.421953,
    "low": 0.336222,
    "high": 0.507684,
    "unit": "of the answers right more"
   }
  ],
  "notes": [
   "Entropy of the translators' encoder attention over its largest possible value: 0.001 (h = 1, seed 1), 0.085 (h = 4, seed 1), 0.136 (h = 8, seed 1), 0.244 (h = 16, seed 1). Where that of one head is the lowest, it does not blur several places into one; it looks at one of them only. One head of 512 at this rate may be saturated: the arms at lower rates are to say so."
  ]
 },
 "residual": {
  "title": "Residual connections",
  "headline": "1 of 4 findings holds; undecided: “Multi30k, base depth: they help” and “Multi30k, twice the depth: they help”; not measured yet: “On the synthetic task, 6 layers a side learn better with residual connections”.",
  "findings": [
   {
    "claim": "On the synthetic task, 2 layers a side learn better with residual connections.",
    "verdict": "holds",
    "because": "2 layers, residual 0.913 ± 0.041 (5 seeds), 2 layers, none 0.257 ± 0.006 (5 seeds)",
    "effect": 0.656104,
    "low": 0.605676,
    "high": 0.706532,
    "unit": "of the tokens right more"
   },
   {
    "claim": "Multi30k, base depth: they help.",
    "verdict": "undecided",
    "because": "base 2.66 ± 0.01 (5 seeds), no residual 7.65; one seed on a side, so the other's spread is taken for both",
    "effect": 4.98611,
    "low": 4.96966,
    "high": 5.00256,
    "unit": "nats a token less"
   },
   {
    "claim": "Multi30k, twice the depth: they help.",
    "verdict": "undecided",
    "because": "twice as deep 2.81, twice as deep, no residual 6.87; one seed each",
    "effect": 4.05535,
    "low": null,
    "high": null,
    "unit": "nats a token less"
   }
  ],
  "notes": []
 },
 "norm": {
  "title": "Layer against batch normalisation",
  "headline": "2 of 6 findings hold; not seen here: 3 of them; undecided: “Multi30k: layer normalisation translates better”.",
  "findings": [
   {
    "claim": "Synthetic task: training with batch normalisation diverges.",
    "verdict": "does not hold here",
    "because": "loss at the end over the first 0.02 ± 0.01 (5 seeds), no fall 1.00 ± 0.00 (5 seeds); differences -0.99, -0.98, -0.98, -0.98, -0.99",
    "effect": -0.983004,
    "low": -0.9909,
    "high": -0.975108,
    "unit": "times"
   },
   {
    "claim": "Synthetic task: layer normalisation is better.",
    "verdict": "does not hold here",
    "because": "layer 0.993 ± 0.006 (5 seeds), batch 0.995 ± 0.006 (5 seeds)",
    "effect": -0.00206604,
    "low": -0.011222,
    "high": 0.00708996,
    "unit": "of the tokens right more"
   },
   {
    "claim": "Synthetic task: the running statistics of batch normalisation cost something.",
    "verdict": "does not hold here",
    "because": "statistics of the batch 0.990 ± 0.012 (5 seeds), running 0.995 ± 0.006 (5 seeds); differences +0.000, +0.000, +0.000, -0.022, +0.000",
    "effect": -0.00432432,
    "low": -0.0163305,
    "high": 0.00768191,
    "unit": "of the tokens right"
   },
   {
    "claim": "Padding changes what batch normalisation by the batch at hand makes of a sentence.",
    "verdict": "holds",
    "because": "relative change 0.671 ± 0.113 (5 seeds), none 0.000 ± 0.000 (5 seeds); differences +0.863, +0.579, +0.676, +0.609, +0.626",
    "effect": 0.670602,
    "low": 0.530076,
    "high": 0.811127,
    "unit": "of the states' norm"
   },
   {
    "claim": "It does not change what layer normalisation makes of it.",
    "verdict": "holds",
    "because": "largest relative change 6.4e-07",
    "effect": 6.41516e-07,
    "low": null,
    "high": null,
    "unit": "of the states' norm"
   },
   {
    "claim": "Multi30k: layer normalisation translates better.",
    "verdict": "undecided",
    "because": "base 26.13 ± 0.51 (5 seeds), batch norm 23.02 ± 1.43 (2 seeds)",
    "effect": 3.10616,
    "low": -7.48161,
    "high": 13.6939,
    "unit": "BLEU more"
   }
  ],
  "notes": [
   "Multi30k, batch norm, seed 1: nll, statistics running 3.652; nll, statistics of the batch 2.673",
   "Multi30k, batch norm, seed 2: nll, statistics running 3.638; nll, statistics of the batch 2.713"
  ]
 },
 "norm-order": {
  "title": "Normalisation after or before each sub-layer, with and without warm-up",
  "headline": "None of 5 findings hold; undecided: 3 of them; not measured yet: “Multi30k: post-norm needs the warm-up” and “Multi30k: pre-norm without warm-up is as good as with it”.",
  "findings": [
   {
    "claim": "Synthetic task: post-norm needs the warm-up.",
    "verdict": "undecided",
    "because": "post-norm, warm-up, 0.004 0.09 ± 0.03 (3 seeds), post-norm, no warm-up, 0.002 0.15 ± 0.04 (3 seeds)",
    "effect": 0.0521981,
    "low": -0.0313508,
    "high": 0.135747,
    "unit": "nats a token less"
   },
   {
    "claim": "Synthetic task: pre-norm without warm-up is as good as with it.",
    "verdict": "undecided",
    "because": "pre-norm, no warm-up, 0.004 0.06 ± 0.03 (3 seeds), pre-norm, warm-up, 0.004 0.04 ± 0.02 (3 seeds); nearly the same is ± 0.1; “holds” before the correction for 3 comparisons",
    "effect": 0.0198017,
    "low": -0.04856,
    "high": 0.0881634,
    "unit": "nats a token"
   },
   {
    "claim": "Multi30k at one rate of 4e-3: pre-norm without warm-up is as good as with it.",
    "verdict": "undecided",
    "because": "pre-norm, no warm-up 20.96 ± 1.82 (2 seeds), pre-norm, warm-up 26.13 ± 0.51 (5 seeds); nearly the same is ± 1",
    "effect": -5.16472,
    "low": -19.5469,
    "high": 9.21749,
    "unit": "BLEU"
   }
  ],
  "notes": []
 },
 "mask": {
  "title": "The mask of the decoder, and cheating without it",
  "headline": "7 of 10 findings hold; undecided: 3 of them.",
  "findings": [
   {
    "claim": "Before the softmax every later score is -inf.",
    "verdict": "holds",
    "because": "6,336 of 6,336 scores of later positions, and none of the others",
    "effect": 6336,
    "low": null,
    "high": null,
    "unit": "scores"
   },
   {
    "claim": "Later positions have weight 0 and no influence.",
    "verdict": "holds",
    "because": "largest weight on a later position 0, largest change of an earlier logit 0",
    "effect": 0.0,
    "low": null,
    "high": null,
    "unit": "weight"
   },
   {
    "claim": "Synthetic task, no mask: training BLEU is as high as the honest decoder's, or higher.",
    "verdict": "undecided",
    "because": "no mask, plus 1 98.09 ± 2.18 (5 seeds), masked and shifted 93.17 ± 4.52 (5 seeds)",
    "effect": 4.92031,
    "low": -0.622244,
    "high": 10.4629,
    "unit": "BLEU more"
   },
   {
    "claim": "Synthetic task, no mask: free running it is below half of that.",
    "verdict": "holds",
    "because": "half of its training BLEU 48.55 ± 1.09 (5 seeds), free running 3.91 ± 3.45 (5 seeds); differences +48.44, +45.01, +40.14, +41.49, +48.09",
    "effect": 44.6352,
    "low": 39.9623,
    "high": 49.3081,
    "unit": "BLEU"
   },
   {
    "claim": "Synthetic task, no mask: free running it is worse than the honest decoder.",
    "verdict": "holds",
    "because": "masked and shifted 92.38 ± 5.34 (5 seeds), no mask 3.91 ± 3.45 (5 seeds)",
    "effect": 88.4717,
    "low": 81.721,
    "high": 95.2224,
    "unit": "BLEU more"
   },
   {
    "claim": "Synthetic task, not shifted: training BLEU is as high as the honest decoder's, or higher.",
    "verdict": "holds",
    "because": "not shifted, plus 1 101.00 ± 0.00 (5 seeds), masked and shifted 93.17 ± 4.52 (5 seeds)",
    "effect": 7.82752,
    "low": 2.21944,
    "high": 13.4356,
    "unit": "BLEU more"
   },
   {
    "claim": "Synthetic task, not shifted: free running it is below half of that.",
    "verdict": "holds",
    "because": "half of its training BLEU 50.00 ± 0.00 (5 seeds), free running 0.18 ± 0.16 (5 seeds); differences +49.74, +49.70, +50.00, +50.00, +49.68",
    "effect": 49.8249,
    "low": 49.6246,
    "high": 50.0253,
    "unit": "BLEU"
   },
   {
    "claim": "Synthetic task, not shifted: free running it is worse than the honest decoder.",
    "verdict": "holds",
    "because": "masked and shifted 92.38 ± 5.34 (5 seeds), not shifted 0.18 ± 0.16 (5 seeds)",
    "effect": 92.2078,
    "low": 85.5836,
    "high": 98.8321,
    "unit": "BLEU more"
   },
   {
    "claim": "Multi30k, no mask: free running it is worse.",
    "verdict": "undecided",
    "because": "masked and shifted 20.05, no mask 0.00; one seed each",
    "effect": 20.0459,
    "low": null,
    "high": null,
    "unit": "BLEU more"
   },
   {
    "claim": "Multi30k, not shifted: free running it is worse.",
    "verdict": "undecided",
    "because": "masked and shifted 20.05, not shifted 0.01; one seed each",
    "effect": 20.0326,
    "low": null,
    "high": null,
    "unit": "BLEU more"
   }
  ],
  "notes": [
   "Multi30k, masked and shifted, seed 1 writes: “Ein Mann mit einem orangefarbenen Hut auf dem Kopf.”",
   "Multi30k, no mask, seed 1 writes: “”",
   "Multi30k, not shifted, seed 1 writes: “zw zw zwantantant unbefestig unbefestig unbefestigigesigesigesutscheutscheutscheigesiges unbefestig unbefestigzenzenzen ”",
   "On Multi30k a perfect copier's smoothed loss is not 0: ε of the probability is asked for elsewhere."
  ]
 },
 "prune": {
  "title": "Removing heads from a trained model",
  "headline": "None of 4 findings hold; undecided: 4 of them.",
  "findings": [
   {
    "claim": "A quarter of the heads can go.",
    "verdict": "undecided",
    "because": "BLEU without a quarter 0.958, whole 1.000; nearly the same is ± 0.05; one seed on a side, so the other's spread is taken for both",
    "effect": -0.0418096,
    "low": -0.0418096,
    "high": -0.0418096,
    "unit": "of the whole model's BLEU"
   },
   {
    "claim": "Which ones matters.",
    "verdict": "undecided",
    "because": "half removed by importance 19.67, at random 12.33; differences +7.34; one seed on a side, so the other's spread is taken for both",
    "effect": 7.34128,
    "low": 7.34128,
    "high": 7.34128,
    "unit": "BLEU"
   },
   {
    "claim": "There are heads that are positional.",
    "verdict": "undecided",
    "because": "one model: 0",
    "effect": null,
    "low": null,
    "high": null,
    "unit": ""
   },
   {
    "claim": "There are heads that attend to rare words.",
    "verdict": "undecided",
    "because": "one model: 0",
    "effect": null,
    "low": null,
    "high": null,
    "unit": ""
   }
  ],
  "notes": [
   "Nearest to a role in the first model: decoder 3.6 has 49% of its weight at offset +0, encoder 2.5 puts 1.48 times their share on rare words. The table has its heads with a role, the eight most important, and the three nearest to each."
  ]
 },
 "distance": {
  "title": "Recall over a distance, and the two sides of parallelism",
  "headline": "5 of 9 findings hold; not seen here: “n < d (T = 64, d = 256): a training pass is quicker”; not testable here: “The Transformer gains more from a second thread”; not measured yet: “100 back with a curriculum the Transformer recalls more than the LSTM” and “30 back, the curriculum helps the LSTM”.",
  "findings": [
   {
    "claim": "500 back the Transformer recalls more than the LSTM.",
    "verdict": "holds",
    "because": "transformer 1.000 ± 0.000 (2 seeds), lstm 0.075 ± 0.002 (2 seeds)",
    "effect": 0.925,
    "low": 0.903823,
    "high": 0.946177,
    "unit": "of the answers right more"
   },
   {
    "claim": "The Transformer's chain of operations does not grow with the length.",
    "verdict": "holds",
    "because": "94 operations at 16 tokens, 94 at 256",
    "effect": null,
    "low": null,
    "high": null,
    "unit": ""
   },
   {
    "claim": "The LSTM's grows as the length.",
    "verdict": "holds",
    "because": "301 operations at 16 tokens, 4139 at 256",
    "effect": 0.943814,
    "low": 0.887102,
    "high": 1.00053,
    "unit": "exponent"
   },
   {
    "claim": "The Transformer gains more from a second thread.",
    "verdict": "not testable here",
    "because": "a pass is 0.31 times as quick with two threads, the LSTM's 0.09: the second core was not free, so nothing can be gained from it",
    "effect": null,
    "low": null,
    "high": null,
    "unit": ""
   },
   {
    "claim": "n < d (T = 64, d = 256): a training pass is quicker.",
    "verdict": "does not hold here",
    "because": "one core, least of several",
    "effect": 0.616735,
    "low": null,
    "high": null,
    "unit": "times the Transformer's time"
   },
   {
    "claim": "n > d (T = 256, d = 64): it is not.",
    "verdict": "holds",
    "because": "one core, least of several",
    "effect": 0.382176,
    "low": null,
    "high": null,
    "unit": "times the Transformer's time"
   },
   {
    "claim": "Generation is one token at a time for both.",
    "verdict": "holds",
    "because": "transformer: writing takes 3.7 times a pass, lstm: writing takes 8.0 times a pass",
    "effect": 3.68783,
    "low": null,
    "high": null,
    "unit": "times a pass"
   }
  ],
  "notes": [
   "On one core nothing is parallel: what is left of the advantage in training is that of large matrix products. The chain says how far more cores could help; two threads say how far they do here."
  ]
 },
 "table1": {
  "title": "Table 1: complexity, sequential operations and path lengths of four kinds of layer",
  "headline": "6 of 11 findings hold; undecided: 5 of them.",
  "findings": [
   {
    "claim": "self-attention: time grows with n as n^2.",
    "verdict": "undecided",
    "because": "measured n^2.11; “holds” before the correction for 10 comparisons",
    "effect": 2.1091,
    "low": 1.93723,
    "high": 2.28096,
    "unit": "exponent"
   },
   {
    "claim": "self-attention: time grows with d as d^1.",
    "verdict": "undecided",
    "because": "measured d^0.88; “holds” before the correction for 10 comparisons",
    "effect": 0.876361,
    "low": 0.585722,
    "high": 1.167,
    "unit": "exponent"
   },
   {
    "claim": "recurrent: time grows with n as n^1.",
    "verdict": "holds",
    "because": "measured n^1.00",
    "effect": 1.00098,
    "low": 0.908708,
    "high": 1.09324,
    "unit": "exponent"
   },
   {
    "claim": "recurrent: time grows with d as d^2.",
    "verdict": "undecided",
    "because": "measured d^1.85",
    "effect": 1.84953,
    "low": 1.03475,
    "high": 2.66431,
    "unit": "exponent"
   },
   {
    "claim": "convolution: time grows with n as n^1.",
    "verdict": "holds",
    "because": "measured n^0.95",
    "effect": 0.954841,
    "low": 0.879221,
    "high": 1.03046,
    "unit": "exponent"
   },
   {
    "claim": "convolution: time grows with d as d^2.",
    "verdict": "undecided",
    "because": "measured d^1.66",
    "effect": 1.66201,
    "low": 0.771941,
    "high": 2.55208,
    "unit": "exponent"
   },
   {
    "claim": "restricted self-attention: time grows with n as n^1.",
    "verdict": "holds",
    "because": "measured n^0.94",
    "effect": 0.943849,
    "low": 0.842407,
    "high": 1.04529,
    "unit": "exponent"
   },
   {
    "claim": "restricted self-attention: time grows with d as d^1.",
    "verdict": "undecided",
    "because": "measured d^0.70",
    "effect": 0.696795,
    "low": 0.192593,
    "high": 1.201,
    "unit": "exponent"
   },
   {
    "claim": "Self-attention is faster than recurrence where n < d.",
    "verdict": "holds",
    "because": "LSTM over attention, in 20 of 20 measured cells; the interval is over cells",
    "effect": 2.96157,
    "low": 2.50247,
    "high": 3.50489,
    "unit": "times"
   },
   {
    "claim": "It is slower where n > 4 d.",
    "verdict": "holds",
    "because": "attention over LSTM, in 10 of 10 measured cells; the interval is over cells",
    "effect": 5.77512,
    "low": 2.80681,
    "high": 11.8825,
    "unit": "times"
   },
   {
    "claim": "Path lengths on real layers are as in the table.",
    "verdict": "holds",
    "because": "at n = 64: self-attention 1, recurrent 64, convolution 63, dilated stack 4, restricted self-attention 16",
    "effect": null,
    "low": null,
    "high": null,
    "unit": ""
   }
  ],
  "notes": [
   "A stack of plain convolutions with a full receptive field at n = 4096 has 4095 layers: 106,628 ms by multiplication of one layer's time, not run.",
   "The fused kernel never holds the n × n weights: the same exponent of time, far less memory."
  ]
 },
 "rnn": {
  "title": "The systems that the Transformer replaced",
  "headline": "Nothing of it is measured yet.",
  "findings": [],
  "notes": []
 }
};
