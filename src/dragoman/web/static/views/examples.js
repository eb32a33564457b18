// A sentence to begin with, where the reader has brought none.

const EXAMPLES = {
  de: "Der alte Mann setzte sich an den Fluss.", en: "The old man sat down near the river.",
  es: "El viejo se sentó junto al río.", fr: "Le vieil homme s’est assis près de la rivière.",
  it: "Il vecchio si sedette vicino al fiume.", nl: "De oude man ging bij de rivier zitten.",
  pt: "O velho sentou-se perto do rio.",
};

export const exampleOf = (language) => EXAMPLES[language] ?? "";

// For who comes to an empty page: what people translate.
const MORE = {
  de: ["Könnten Sie mir bitte sagen, wo der Bahnhof ist?", "Wir haben gestern den ganzen Tag auf dich gewartet."],
  en: ["Could you tell me where the station is?", "We waited for you all day yesterday."],
  es: ["¿Podría decirme dónde está la estación?", "Ayer te esperamos todo el día."],
  fr: ["Pourriez-vous me dire où se trouve la gare ?", "Nous t’avons attendu toute la journée hier."],
  it: ["Mi può dire dov’è la stazione?", "Ieri ti abbiamo aspettato tutto il giorno."],
  nl: ["Kunt u mij zeggen waar het station is?", "We hebben gisteren de hele dag op je gewacht."],
  pt: ["Pode me dizer onde fica a estação?", "Esperamos por você o dia todo ontem."],
};
const MOST_EXAMPLES = 3;

// Examples in these languages, of each one before any has another.
export function examplesOf(languages) {
  const lists = languages.map((language) => [EXAMPLES[language], ...(MORE[language] ?? [])].filter(Boolean).map((text) => ({ language, text })));
  const longest = Math.max(0, ...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, at) => lists.flatMap((list) => list.slice(at, at + 1))).flat().slice(0, MOST_EXAMPLES);
}
