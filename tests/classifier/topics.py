"""A small corpus whose documents have lists of labels."""

import random

import polars as pl

TOPICS = ["corn", "grain", "money", "trade", "wheat"]


def news(rows=150, seed=0):
    """Documents of words that topics use to different degrees, with any number of topics."""
    draw = random.Random(seed)
    texts = []
    topics = []
    for _ in range(rows):
        own = sorted(draw.sample(TOPICS, draw.choice([0, 1, 1, 1, 2, 3])))
        start = [TOPICS.index(topic) for topic in own] or [len(TOPICS)]
        texts.append(" ".join(f"word{int(draw.gammavariate(2 + draw.choice(start), 4))}"
                              for _ in range(draw.randrange(20))))
        topics.append(draw.sample(own, len(own)))
    texts[3:6] = [None, "", "unheard words"]
    return pl.DataFrame({"text": texts, "label": topics},
                        schema={"text": pl.String, "label": pl.List(pl.String)})


NEWS = news()
TEST = news(60, seed=1)


def against_rest(frame, label):
    """The same documents with one label each: whether ``label`` is in the list."""
    return frame.with_columns(label=pl.col("label").list.contains(label))


def one_label_each(frame):
    """The same documents with the first of their labels."""
    return frame.with_columns(label=pl.col("label").list.first().fill_null("corn"))
