// What the page can show, in the order of its tabs. A view is a component that gets the values of the address.

import { InsideView } from "./views/inside.js";
import { TranslateView } from "./views/translate.js";

export const views = [
  { id: "translate", title: "Translate", View: TranslateView },
  { id: "inside", title: "Inside", View: InsideView },
];
