/* A fuzz target for the C export: a model with patched bytes, and a text, in memory of their exact
 * sizes. An input is a number of patches, for each four bytes of a place and one byte of a value,
 * and then the text. With libFuzzer, or as a program of so many pseudo-random inputs. */
#include "model.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void score(const void *model, size_t size, const uint8_t *text, size_t length) {
    size_t outputs = textnb_outputs(model, size), classes = textnb_classes(model, size), needs, k;
    const unsigned char *label, *terms[3];
    size_t lengths[3], half = length / 2;
    double *scores, *chances, counted = 1.0;
    unsigned char *chosen;
    void *workspace;
    textnb_check(model, size);
    if (!outputs || outputs > 1000 || classes > 1000) {
        return;
    }
    for (k = 0; k <= classes; k++) {
        label = textnb_label(model, size, k, &needs);
        if (label != NULL && needs && label[0] + label[needs - 1] == 1000) {
            abort();
        }
    }
    scores = malloc(outputs * sizeof *scores);
    needs = textnb_workspace_size(model, size, length);
    if (needs < (size_t)1 << 28) {
        workspace = malloc(needs);
        textnb_score(model, size, text, length, scores, NULL, workspace, needs);
        if (textnb_score(model, size, text, length, scores, NULL, workspace, needs - 1) == TEXTNB_OK) {
            abort();
        }
        free(workspace);
    }
    terms[0] = terms[2] = text;
    terms[1] = text + half;
    lengths[0] = half;
    lengths[1] = length - half;
    lengths[2] = length;
    needs = textnb_workspace_size(model, size, length);
    if (needs < (size_t)1 << 28) {
        workspace = malloc(needs);
        textnb_score_texts(model, size, terms, lengths, 2, scores, &counted, workspace, needs);
        free(workspace);
    }
    needs = textnb_workspace_size_terms(model, size, 3);
    if (needs < (size_t)1 << 28) {
        workspace = malloc(needs);
        textnb_score_terms(model, size, terms, lengths, 3, scores, NULL, workspace, needs);
        free(workspace);
    }
    chosen = malloc(outputs);
    chances = malloc(classes * sizeof *chances);
    textnb_best(model, size, scores);
    textnb_probabilities(model, size, scores, counted, chances);
    textnb_decide(model, size, scores, counted);
    free(chances);
    textnb_choose(model, size, scores, chosen);
    free(chosen);
    free(scores);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t model_size, patches, k, at;
    const void *own = textnb_embedded(&model_size);
    uint8_t *model, *text;
    if (size < 1) {
        return 0;
    }
    /* Cut, too, if the first byte is odd. */
    patches = data[0] / 32;
    model_size -= data[0] % 2 ? data[0] % model_size : 0;
    model = malloc(model_size);
    memcpy(model, own, model_size);
    data++;
    size--;
    for (k = 0; k < patches && size >= 5; k++, data += 5, size -= 5) {
        at = (size_t)data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16;
        /* Most patches are in the header, where sizes and places are. */
        model[data[3] % 2 ? at % model_size : at % 512 % model_size] = data[4];
    }
    text = malloc(size ? size : 1);
    memcpy(text, data, size);
    score(model, model_size, text, size);
    free(text);
    free(model);
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
        size = 1;
        input[0] = (uint8_t)(next() & (run % 4 ? 0xFE : 0xFF));
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
