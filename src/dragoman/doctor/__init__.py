"""Why a translator is worse than it could be: ranked causes, each with evidence, cost and remedy."""
