/* The functions of the C export on one input: a model, some of whose bytes may be patched, and
 * texts, in memory of their exact sizes. With libFuzzer, or as a program of so many pseudo-random
 * inputs.
 *
 * An input is the number of patches, times 32, and 1 if the model is cut; the model's number; four
 * bytes of a place and one byte of a value for each patch; and texts with a byte 0xFF between them.
 * An input without patches may end in the answers that Python gave, and the hash of all before. */
#include "model.h"
#include "models.h"

#include <math.h>
#ifdef __has_include
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#endif
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ASAN_POISON_MEMORY_REGION
#define ASAN_POISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#endif

enum { MODELS = sizeof models / sizeof *models, FIELDS = 40, MOST = 1 << 24 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a model answers. Of a model of lists of labels, `best` has a bit for each label. */
typedef struct {
    double scores[100], chances[100];
    int32_t best, decision;
} answer;

static void check(int right, const char *what) {
    if (!right) {
        fprintf(stderr, "the C export is wrong: %s\n", what);
        abort();
    }
}

/* A workspace of its exact size, in memory that is there for all inputs. */
static void *workspace(size_t needs) {
    static unsigned char *room;
    static size_t given = MOST;
    if (room == NULL) {
        room = malloc(MOST);
    }
    if (needs > MOST) {
        return NULL;
    }
    ASAN_POISON_MEMORY_REGION(room, given);
    ASAN_UNPOISON_MEMORY_REGION(room, needs);
    given = needs;
    return room;
}

/* Every function; whether the texts were scored. */
static int ask(const void *model, size_t size, const uint8_t *text, size_t length, answer *to) {
    size_t outputs = textnb_outputs(model, size), classes = textnb_classes(model, size), needs, k;
    const unsigned char *label, *fields[FIELDS];
    volatile unsigned char seen = 0;
    size_t lengths[FIELDS], n = 1, begin = 0;
    double counted = 1.0, again[100], *numbers;
    unsigned char *chosen;
    void *room;
    int scored;
    (void)seen;
    if (!outputs || outputs > 100 || classes > 100) {
        return 0;
    }
    for (k = 0; k <= classes; k++) {
        label = textnb_label(model, size, k, &needs);
        if (label != NULL && needs) {
            seen = label[0];
            seen = label[needs - 1];
        }
    }
    for (k = 0; k < length; k++) {
        if (text[k] == 0xFF && n < FIELDS) {
            fields[n - 1] = text + begin;
            lengths[n++ - 1] = k - begin;
            begin = k + 1;
        }
    }
    fields[n - 1] = text + begin;
    lengths[n - 1] = length - begin;
    numbers = malloc(length / 8 * 8 + 1);
    memcpy(numbers, text, length / 8 * 8);
    scored = textnb_score_features(model, size, numbers, length / 8, to->scores, &counted);
    free(numbers);
    if ((room = workspace(needs = textnb_workspace_size_terms(model, size, n))) != NULL) {
        textnb_score_terms(model, size, fields, lengths, n, again, NULL, room, needs);
    }
    if ((room = workspace(needs = textnb_workspace_size(model, size, length))) != NULL && scored) {
        scored = textnb_score_texts(model, size, fields, lengths, n, to->scores, &counted, room,
                                    needs);
        if (textnb_score(model, size, text, length, again, NULL, room, needs) == TEXTNB_OK) {
            check(n > 1 || scored || !memcmp(again, to->scores, 8 * outputs), "one text or several");
            room = workspace(needs - 1);
            check(textnb_score(model, size, text, length, again, NULL, room, needs - 1)
                  != TEXTNB_OK, "a workspace that is too small");
        }
    }
    if (scored) {
        memset(to->scores, 0, sizeof to->scores);
    }
    to->best = textnb_best(model, size, to->scores);
    chosen = malloc(outputs);
    if (textnb_choose(model, size, to->scores, chosen) >= 0) {
        for (to->best = 0, k = 0; k < outputs && k < 30; k++) {
            to->best |= chosen[k] << k;
        }
    }
    free(chosen);
    numbers = malloc(classes * sizeof *numbers);
    textnb_probabilities(model, size, to->scores, counted, numbers);
    memcpy(to->chances, numbers, classes * sizeof *numbers);
    free(numbers);
    to->decision = textnb_decide(model, size, to->scores, counted);
    return !scored;
}

static uint64_t hash(const uint8_t *data, size_t size) {
    uint64_t value = 0xCBF29CE484222325u;
    while (size--) {
        value = (value ^ *data++) * 0x100000001B3u;
    }
    return value;
}

/* The bytes of the answers at the end of an input, which are compared with these; 0 without. */
static size_t answers_at_end(const uint8_t *data, size_t size, const void *model, size_t bytes,
                             answer *given) {
    size_t outputs = textnb_outputs(model, bytes), classes = textnb_classes(model, bytes);
    size_t length = 8 * (outputs + classes) + 16;
    uint64_t wanted;
    if (data[0] || size < 2 + length) {
        return 0;
    }
    memcpy(&wanted, data + size - 8, 8);
    if (hash(data, size - 8) != wanted) {
        return 0;
    }
    data += size - length;
    memcpy(given->scores, data, 8 * outputs);
    memcpy(given->chances, data + 8 * outputs, 8 * classes);
    memcpy(&given->best, data + 8 * (outputs + classes), 4);
    memcpy(&given->decision, data + 8 * (outputs + classes) + 4, 4);
    return length;
}

static void compare(const answer *own, const answer *given, size_t outputs, size_t classes) {
    size_t k;
    for (k = 0; k < outputs; k++) {
        check(fabs(own->scores[k] - given->scores[k]) <= 1e-12 * fabs(given->scores[k])
              || own->scores[k] == given->scores[k], "another score");
    }
    for (k = 0; k < classes; k++) {
        check(fabs(own->chances[k] - given->chances[k]) <= 1e-9
              || (isnan(own->chances[k]) && isnan(given->chances[k])), "another probability");
    }
    /* Where rounding decides, there is no answer. */
    check(given->best == -100 || own->best == given->best, "another label");
    check(given->decision == -100 || own->decision == given->decision, "another decision");
}

/* Where a patch is: in the header, where sizes and places are; in the first bytes of a part; or
 * anywhere. */
static size_t place_of(const uint64_t *model, size_t bytes, const uint8_t *data) {
    size_t at = (size_t)data[0] | (size_t)data[1] << 8, part = 9 + 2 * (data[2] % 32u);
    if (data[3] % 4 < 2) {
        return at % 768 % bytes;
    }
    if (data[3] % 4 == 2 && model[part + 1]) {
        return (size_t)(model[part] + at % 64 % model[part + 1]);
    }
    return (at | (size_t)data[2] << 16) % bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t *copies[MODELS];
    size_t which, bytes, cut, patches, k, places[8], end;
    uint8_t *model, *text, before[8];
    answer own, given;
    int scored;
    if (size < 2) {
        return 0;
    }
    which = data[1] % MODELS;
    cut = bytes = models[which].size;
    if (copies[which] == NULL) {
        copies[which] = malloc(bytes);
        memcpy(copies[which], models[which].data, bytes);
    }
    model = copies[which];
    end = answers_at_end(data, size, model, bytes, &given);
    patches = data[0] / 32;
    cut -= data[0] % 2 ? data[0] % bytes : 0;
    data += 2;
    size -= 2;
    for (k = 0; k < patches && size >= 5; k++, data += 5, size -= 5) {
        places[k] = place_of(models[which].data, bytes, data);
        before[k] = model[places[k]];
        model[places[k]] = data[4];
    }
    size -= end;
    text = malloc(size ? size : 1);
    memcpy(text, data, size);
    ASAN_POISON_MEMORY_REGION(model + cut, bytes - cut);
    if (cut < bytes) {
        textnb_check(model, cut);
    }
    scored = ask(model, cut, text, size, &own);
    ASAN_UNPOISON_MEMORY_REGION(model + cut, bytes - cut);
    free(text);
    while (k--) {
        model[places[k]] = before[k];
    }
    if (end) {
        check(scored, "no answer");
        compare(&own, &given, textnb_outputs(model, bytes), textnb_classes(model, bytes));
    }
    return 0;
}

#ifdef RANDOM_INPUTS
static uint64_t state = 88172645463325252u;

static uint8_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint8_t)(state >> 32);
}

int main(void) {
    static const char *const pieces[] = {
        "good", "film ", "GOOD", " ", "c++", "U.S.", "$5.50%", "\xce\xa3", "I\xcc\x87", "\xe4\xb8\xad",
        "\xe5\x9c\x8b", "\xff", "\xe4\xb8", "\xf0\x9f\x98\x80", "\xed\xa0\x80", "!", "\xc4\xb0",
        "\xef\xb7\xba", "\xea\xb0\x81", "\xe1\x84\x80\xe1\x85\xa1", "a\xcc\x81\xcc\xa3", "\xc7\xad", "\\:", "\t\n"};
    uint8_t input[600];
    long run;
    size_t size, n, k;
    const char *piece;
    for (run = 0; run < RANDOM_INPUTS; run++) {
        size = 2;
        input[0] = (uint8_t)(next() & (run % 4 ? 0xFE : 0xFF));
        input[1] = next();
        for (k = 0; k < 5 * (size_t)(input[0] / 32); k++) {
            input[size++] = next();
        }
        for (n = next(); n-- && size < 580; ) {
            piece = pieces[next() % (sizeof pieces / sizeof *pieces)];
            for (k = 0; piece[k]; k++) {
                input[size++] = next() % 50 ? (uint8_t)piece[k] : next();
            }
        }
        LLVMFuzzerTestOneInput(input, size);
    }
    return 0;
}
#endif
