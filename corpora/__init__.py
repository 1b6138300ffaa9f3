"""What the project can learn from: one card and one loader per corpus."""

from corpora.card import Card
from corpora.registry import CARDS, available, load

__all__ = ["CARDS", "Card", "available", "load"]
