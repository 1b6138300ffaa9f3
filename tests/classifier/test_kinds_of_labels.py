"""Where the package asks whether labels exclude each other.

A row has one class, or any number of labels. Both are pairs of a row and a label, and all that
counts, learns and judges has one path for them. What has to know the difference is listed here: a
place that is not should be done without, or say why.
"""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "textnb"
PLACES = {
    "what labels are, in memory":
        "bayes.labels bayes.counts text.counts text.limited learning.documents learning.fitted",
    "in a file": "storage.document storage.textmodel export.archive",
    "from scores to probabilities and answers, which is what the link is":
        "bayes.forms bayes.calibration bayes.decision scoring.columns scoring.scorer scoring.texts "
        "evaluation.calibration",
    "weights of each label against its rest":
        "bayes.linear bayes.ratio bayes.ratio_scales bayes.sparse_forms models.bernoulli "
        "models.complement models.counts models.multinomial learning.leave_one_out scoring.explain",
    "losses and measures":
        "bayes.choice selection.metric evaluation.held_out evaluation.evaluate evaluation.drift "
        "evaluation.comparison evaluation.labelled evaluation.mistakes evaluation.online "
        "report.cards report.data report.findings report.page report.sections",
    "labels that are wrong, and rows to label":
        "evaluation.audit evaluation.label_errors evaluation.next_rows workflow.relabel",
    "thresholds of each label, or of classes":
        "evaluation.decisions evaluation.goal workflow.decide workflow.options cli.threshold",
    "words have no parts by default": "learning.parameters selection.candidates",
    "folds: of lists, a label may be missing from one":
        "selection.splits selection.search selection.trials evaluation.folds "
        "evaluation.leave_one_out",
    "the answers of exports":
        "export.bundle export.golden export.readme export.reduce export.verify export.write "
        "export.targets.c export.targets.data export.targets.embedded export.targets.known "
        "export.targets.onnx_graph export.targets.onnx_nodes export.targets.program "
        "export.targets.sql export.targets.sql_answers",
    "columns of lists, in and out":
        "cli.drift engines.spark.counts frames.label_lists frames.scan workflow.split",
    "words for people, and refusals":
        "classifiers.text cli.calibrate cli.evidence cli.predict cli.summary cli.tables "
        "cli.train cli.tune export.describe learning.fitting filter.mailfilter filter.quick "
        "workflow.evaluate workflow.job workflow.run workflow.validate",
}
NAMES = {"is_multilabel", "of_lists", "has_label_lists"}


def asks(node):
    """Whether code compares a link, or reads one of the names for it."""
    if isinstance(node, ast.Compare):
        return any(isinstance(own, ast.Constant) and own.value in ("softmax", "sigmoid")
                   for own in node.comparators) and any(
            getattr(part, "attr", None) == "link" or getattr(part, "id", None) == "link"
            for part in ast.walk(node.left))
    name = getattr(node, "attr", None) or getattr(node, "id", None)
    return name in NAMES and isinstance(getattr(node, "ctx", None), ast.Load)


def test_the_places_that_ask_for_the_kind_of_labels_are_known():
    asking = {".".join(path.relative_to(PACKAGE).with_suffix("").parts)
              for path in PACKAGE.rglob("*.py")
              if any(map(asks, ast.walk(ast.parse(path.read_text("utf-8")))))}
    listed = [module for modules in PLACES.values() for module in modules.split()]
    assert len(listed) == len(set(listed))
    assert sorted(asking) == sorted(listed)
