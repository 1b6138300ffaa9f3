"""Lower case by the rules of a language, where they differ from Unicode's for all languages."""

from __future__ import annotations

# Turkish and Azerbaijani have an i with and one without a dot. What is replaced, in this order,
# before all else is put in lower case: an I with a combining dot, \u0130, and I.
TURKIC = (("I\u0307", "i"), ("\u0130", "i"), ("I", "\u0131"))
LANGUAGES = ("tr", "az")
