"""Changes to attention heads, in a notation that Python, the command line, the API and the address bar share.

cross.0.3:off        head 3 of cross-attention in layer 0 contributes nothing; * stands for every layer or head
cross.0.3:pin@4      it attends to token 4 alone, in every row that may see it
cross.0.3:pin@4/2    in row 2 only
decoder.*:unmask     the future becomes visible in every layer of the decoder
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self, cast

import torch

from dragoman.errors import UsageError
from dragoman.model.probe import AttentionKind, Intervention, Override, Site
from dragoman.model.transformer import Transformer

Action = Literal["off", "pin", "unmask"]

_NOTATION = re.compile(
    r"(?P<kind>encoder|decoder|cross)\.(?P<layer>\d+|\*)(?:\.(?P<head>\d+|\*))?:"
    r"(?:(?P<action>off|unmask)|pin@(?P<token>\d+)(?:/(?P<row>\d+))?)"
)


@dataclass(frozen=True)
class Change:
    """One change to one head, to all heads of a layer, or to all layers of a kind."""

    kind: AttentionKind
    layer: int | None  # None: every layer
    head: int | None  # None: every head
    action: Action
    token: int | None = None  # the column that is pinned
    row: int | None = None  # the row that is; None: every row

    @classmethod
    def parse(cls, text: str) -> Self:
        found = _NOTATION.fullmatch(text.strip())
        if found is None:
            raise UsageError(f"change {text!r}; write cross.0.3:off, cross.0.3:pin@4 or decoder.*:unmask")
        action = cast(Action, found["action"] or "pin")
        if (action == "unmask") != (found["head"] is None):
            raise UsageError(
                f"change {text!r}; unmask is for a layer, decoder.0:unmask; off and pin for a head, {found['kind']}.0.3"
            )
        if action == "unmask" and found["kind"] != "decoder":
            raise UsageError(f"change {text!r}; only the decoder hides anything in a single sentence: decoder.*:unmask")
        layer, head, token, row = (
            None if found[name] in (None, "*") else int(found[name]) for name in ("layer", "head", "token", "row")
        )
        if found["kind"] == "decoder" and token is not None and row is not None and row < token:
            raise UsageError(f"change {text!r}; row {row} of the decoder sees tokens 0 to {row}, not {token}")
        return cls(cast(AttentionKind, found["kind"]), layer, head, action, token, row)

    def __str__(self) -> str:
        layer = "*" if self.layer is None else self.layer
        if self.action == "unmask":
            return f"{self.kind}.{layer}:unmask"
        head = "*" if self.head is None else self.head
        done = "off" if self.action == "off" else f"pin@{self.token}" + ("" if self.row is None else f"/{self.row}")
        return f"{self.kind}.{layer}.{head}:{done}"


def interventions(
    changes: Sequence[Change], model: Transformer, source_length: int, target_length: int
) -> Mapping[Site, Intervention]:
    """The changes as the model's forward pass takes them. The lengths are numbers of columns: source tokens with the
    end symbol, and as many target positions as can be decoded."""
    layers = {"encoder": len(model.encoder), "decoder": len(model.decoder), "cross": len(model.decoder)}
    columns = {"encoder": source_length, "decoder": target_length, "cross": source_length}
    off: dict[Site, set[int]] = {}
    pinned: dict[Site, list[Override]] = {}
    unmasked: set[Site] = set()
    for change in changes:
        if change.token is not None and change.token >= columns[change.kind]:
            raise UsageError(f"change {change}; there are tokens 0 to {columns[change.kind] - 1} to look at")
        for layer in range(layers[change.kind]) if change.layer is None else (change.layer,):
            site = Site(change.kind, layer)
            heads = range(model.config.num_heads) if change.head is None else (change.head,)
            if change.action == "unmask":
                unmasked.add(site)
            elif change.action == "off":
                off.setdefault(site, set()).update(heads)
            else:
                for head in heads:
                    pinned.setdefault(site, []).extend(_pins(change, head, columns[change.kind]))
    return {
        site: Intervention(tuple(sorted(off.get(site, ()))), tuple(pinned.get(site, ())), site in unmasked)
        for site in {*off, *pinned, *unmasked}
    }


def _pins(change: Change, head: int, columns: int) -> list[Override]:
    """The rows of a head that attend to one token alone. In the decoder, rows before the token cannot see it and stay
    as they are."""
    assert change.token is not None
    weights = torch.zeros(columns)
    weights[change.token] = 1.0
    if change.row is None and change.kind == "decoder":
        return [Override(head, row, weights) for row in range(change.token, columns)]
    return [Override(head, change.row, weights)]
