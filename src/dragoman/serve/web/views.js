// What the page can show, in the order of its tabs. A view is a component that gets the values of the address.

import { CompareView } from "./views/compare.js";
import { InsideView } from "./views/inside.js";
import { LearnView } from "./views/learn.js";
import { TrainingView } from "./views/training.js";
import { TranslateView } from "./views/translate.js";

export const views = [
  { id: "translate", title: "Translate", View: TranslateView },
  { id: "inside", title: "Inside", View: InsideView },
  { id: "learn", title: "Learn", View: LearnView },
  { id: "training", title: "Training", View: TrainingView },
  { id: "compare", title: "Compare", View: CompareView },
];
