"""Errors for options, names, targets and keys of 0.1 that are gone say what to use instead."""

import importlib
import re
from pathlib import Path

import click
import pytest

import textnb
from textnb import HeldOut, TextClassifier
from textnb.cli.main import VERBS, command_of
from textnb.errors import ParameterError
from textnb.export.targets.known import target_of
from textnb.runtime.removed import KEYS, NAMES, OPTIONS, SETTINGS
from textnb.runtime.removed import TARGETS as GONE
from textnb.runtime.settings import setting_fields

# The options of 0.1, by verb.
ROWS = "--where --input-format --storage-option --query --encoding"
OLD_OPTIONS = {
    "train": f"--output -o --model --label --text --l --fit-prior --uniform-prior --norm --C "
             f"--beta --loss --tol --max-iter --early-stopping --ngrams --analyzer --pattern "
             f"--sklearn-tokens --lowercase --normalize --strip-accents --stop-words "
             f"--field-prefix --min-df --max-df --max-features --binary --memory-limit "
             f"--features --shrinkage --alpha --gamma --var-smoothing --shared-variance "
             f"--allow-singular {ROWS} --on-unreadable --quiet -q",
    "test": f"--positive --report --train --train-where --format {ROWS} --on-unreadable --quiet -q",
    "predict": f"--output -o --probability --scores --explain --top-k --output-format {ROWS} "
               f"--on-unreadable --quiet -q",
    "top": "--class -c -k --format", "explain": "--column -k --format",
    "mail": "--output -o --header --errors --output-format --format --quiet -q",
    "filter": "--passthrough -p --exit-zero -e --spam-class --spam-cutoff --ham-cutoff "
              "--min-learned --maildir --spam-folder --unsure-folder --dry-run --format",
    "run": "--set --check --quiet -q",
    "update": f"--output -o --as --new-class --on-error {ROWS} --on-unreadable --quiet -q",
    "forget": f"--output -o --as {ROWS} --on-unreadable --quiet -q",
    "merge": "--output -o --quiet -q", "diff": f"-k --format {ROWS}",
    "calibrate": f"--output -o --held-out --no-length --format {ROWS} --quiet -q",
    "threshold": f"--class -c --max-false-positives --max-false-negatives --costs --method "
                 f"--min-precision --confidence --leave-one-out --output -o --dry-run --clear "
                 f"--format {ROWS} --quiet -q",
    "validate": f"--folds --groups --time --seed --leave-one-out --smoothing --positive --format "
                f"{ROWS} --quiet -q",
    "duplicates": f"--text --label --near --exact --show --format --test-where {ROWS}",
    "export": "--to --output -o --positive --input --top --max-bytes --check --storage-option "
              "--query --quiet -q",
    "verify": f"--format {ROWS}", "describe": "--format"}
OLD_NAMES = (
    "BernoulliNB Calibration CategoricalNB ComplementNB CountStatistics DataError Decision "
    "ExportError GaussianNB HeldOut HistogramDensity ImpossibleRowError LinearDiscriminantAnalysis "
    "LinearForm LogCountRatio MailFilter ModelFileError MomentStatistics MultinomialNB "
    "NBLogisticRegression NearestCentroid ParameterError PlugInBayes QuadraticDiscriminantAnalysis "
    "QuadraticForm RegularizedDiscriminantAnalysis Reliability SchemaError SmoothingPath "
    "SourceError TableClassifier TextClassifier TextnbError Tokenizer VocabularyError "
    "accuracy_by_fold calibrate choose_class_thresholds choose_threshold compare_models "
    "cross_validate describe_model evaluate evaluate_roc evaluation_of export_model "
    "find_duplicates fit_calibration held_out leave_one_out load mail_errors mistakes "
    "operating_points parse_message reliability roc roca scan scan_database scan_mail "
    "smoothing_path verify_export write_report")


def options_of(verb):
    return {name for param in command_of(verb).params
            for name in (*param.opts, *param.secondary_opts) if name.startswith("-")}


def test_there_are_few_options():
    options = [param for verb in VERBS for param in command_of(verb).params
               if isinstance(param, click.Option) and param.name != "help_all"]
    assert len(options) <= 249


def test_every_option_and_name_of_0_1_exists_or_is_in_the_tables():
    assert {(verb, option) for verb, options in OLD_OPTIONS.items() for option in options.split()
            if option not in options_of(verb)} <= {*OPTIONS}
    assert {*OLD_NAMES.split()} - {*textnb.__all__} <= {*NAMES}


@pytest.mark.parametrize(("verb", "option"), OPTIONS)
def test_the_replacement_of_an_option_exists(verb, option):
    advice = OPTIONS[verb, option]
    # Advice such as `--set KEY=VALUE` names a setting of the verb.
    for under, key in re.findall(r"--(read|set) [\"']?(\w+)", advice):
        assert key in {field.name for group in command_of(verb).groups
                       for field, facts in setting_fields(group) if facts.key_of == under}
    assert {*re.findall(r"--[a-z][\w-]*", advice)} <= options_of(verb)
    assert {*re.findall(r"textnb (\w+)", advice)} <= {*VERBS}
    assert all(hasattr(textnb, name) for name in re.findall(r"(\w+)\(\w+=", advice))


@pytest.mark.parametrize("name", NAMES)
def test_the_replacement_of_a_name_exists(name):
    for module in re.findall(r"import it from (textnb[\w.]+)", NAMES[name]):
        assert hasattr(importlib.import_module(module), name)
    assert all(hasattr(textnb, new) for new in re.findall(r"textnb\.([A-Z]\w+)", NAMES[name]))
    assert all(hasattr(HeldOut, new) for new in re.findall(r"held\.(\w+)\(", NAMES[name]))


@pytest.mark.parametrize(("verb", "option"), OPTIONS)
def test_an_option_that_is_gone_raises_the_advice(run, verb, option):
    assert option not in options_of(verb)
    ran = run(verb, option, "x").checked(3 if verb == "filter" else 2)
    assert ran.err.endswith(f"error: {option} is gone: {OPTIONS[verb, option]}\n")


@pytest.mark.parametrize(("words", "said"), [
    *((["export", "absent.textnb", "--to", target, "-o", "out"],
       f"error: --to: the target {target} is gone: {advice}\n") for target, advice in GONE.items()),
    *((["run", "job.toml", "--set", f"{key}=1"], f"{key}: it is gone: {advice}\n")
      for key, advice in [
          *((key.replace("exports.", "exports.0."), advice) for key, advice in KEYS.items()),
          *((f"model.{name}", advice) for name, advice in SETTINGS.items())])])
def test_a_target_or_key_of_jobs_that_is_gone_raises_the_advice(run, folder, words, said):
    Path("job.toml").write_text('output = "out"\n[input]\ntrain = "x.csv"\n')
    assert said in run(*words).checked(2).err


@pytest.mark.parametrize(("call", "said"), [
    *((lambda target=target: target_of(target), f"to: the target {target} is gone: {advice}")
      for target, advice in GONE.items()),
    *((lambda name=name: TextClassifier(**{name: 1}),
       f"no setting '{name}': it is gone: {advice}") for name, advice in SETTINGS.items())])
def test_a_target_or_setting_that_is_gone_raises_the_advice_in_python(call, said):
    with pytest.raises(ParameterError, match=re.escape(said)):
        call()
