// Corrections, where the service keeps them: a sentence that a person has changed is kept when he leaves it, and from then
// on translated so. To take the change back forgets it.

import { useRef, useState } from "../../vendor/htm-preact.js";
import * as api from "../../api.js";

export function useCorrections(about, translation) {
  const kept = useRef(new Map()); // sentence and languages: what is kept of it
  const [told, setTold] = useState({ name: "", said: "" });
  const nameOf = ({ source }) => JSON.stringify([translation.languages.source, translation.languages.target, source]);

  const send = async (segment, words, said) => {
    const name = nameOf(segment);
    const { source, target } = translation.languages;
    const machine = segment.corrected ? "" : segment.candidates[0].text;
    try {
      await api.correct({ text: segment.source, source, target, translation: words, machine });
      kept.current.set(name, words);
      setTold({ name, said });
    } catch (error) {
      setTold({ name, said: error.message });
    }
  };
  const standsAt = (index) => translation.segments[index];
  return {
    // The person is done with a sentence.
    leave: (index) => {
      const segment = standsAt(index);
      if (!about.corrections || !segment?.touched) return;
      const name = nameOf(segment);
      const words = segment.changed ? segment.text.trim() : "";
      const before = kept.current.get(name) ?? (segment.corrected ? segment.candidates[0].text : "");
      if (words === before || (!segment.changed && !kept.current.has(name))) return;
      send(segment, words, words ? "Kept: from now on this sentence is translated so." : "Forgotten.");
    },
    forget: async (index) => {
      await send(standsAt(index), "", "Forgotten.");
      translation.retry();
    },
    isKept: (index) => Boolean(standsAt(index) && (kept.current.get(nameOf(standsAt(index))) ?? (standsAt(index).corrected ? "yes" : ""))),
    said: (index) => {
      const segment = standsAt(index);
      if (told.said && told.name === nameOf(segment)) return told.said;
      return segment.corrected && !segment.changed && kept.current.get(nameOf(segment)) !== "" ? "As corrected before." : "";
    },
  };
}
