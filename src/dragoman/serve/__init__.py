"""The service: HTTP over Translator and Explainer, and the page. Everything here needs the extra `serve`."""
