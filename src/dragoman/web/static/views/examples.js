// A sentence to begin with, where the reader has brought none.

const EXAMPLES = {
  de: "Der alte Mann setzte sich an den Fluss.", en: "The old man sat down near the river.",
  es: "El viejo se sentó junto al río.", fr: "Le vieil homme s’est assis près de la rivière.",
  it: "Il vecchio si sedette vicino al fiume.", nl: "De oude man ging bij de rivier zitten.",
  pt: "O velho sentou-se perto do rio.",
};

export const exampleOf = (language) => EXAMPLES[language] ?? "";
