/* Max, Min, sum, sum of squares and sketch of the elements of a tensor, in one pass over its memory.
 *
 * arrays/statistics.py and arrays/sketch.py define the figures, and compute them with numpy where this is not built;
 * docs/format.md, "Statistics", says how near both are. Nothing is kept between calls, nothing is written to. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* As in arrays/sketch_map.py. */
enum { LENGTH = 16, BLOCK = 1 << 16, ROW = 512, GROUP = 1 << 13, SETS = 4, VECTORS = 3 };

/* Numbers that are added side by side. */
enum { LANES = 16 };

/* Bytes that are fetched ahead of those that are read: rows are too short for processors to see that more follow. */
enum { AHEAD = 8192 };

/* Elements from which on other threads of Python may run meanwhile. */
enum { LONG = 1 << 14 };

enum { MOST_DIMENSIONS = 64 };

/* Kinds of elements: those of Python's module struct; E is bfloat16, t a byte that a table gives a number. Rows of the
 * first are made of floats, of the others of doubles. */
#define FLOATS "feEt?"
#define DOUBLES "dbBhHiIqQ"

/* Floats up to this have sums, also over a whole row; beyond it they are sketched in double. */
static const double LARGEST_FLOAT = 1e30, LARGEST_DOUBLE = 1e300;

/* What `one_pass.tables` makes. */
typedef struct {
    double row_length, row_signs[BLOCK / ROW][VECTORS], rest_signs[LENGTH][LENGTH];
    float vectors[SETS][VECTORS][ROW], rest_vectors[ROW][LENGTH];
    uint8_t row_numbers[BLOCK / ROW][VECTORS];
} Tables;

typedef struct {
    double maximum, minimum, total, squares, sketch[LENGTH];
} Figures;

/* The elements that are still to be read, in C order. */
typedef struct {
    const char *next;
    size_t count, itemsize;
    int64_t first;
    char kind;
    const float *values; /* of the 256 numbers that a byte may be */
    int contiguous, dimensions;
    Py_ssize_t shape[MOST_DIMENSIONS], strides[MOST_DIMENSIONS], index[MOST_DIMENSIONS];
} Elements;

/* A block of elements, before its numbers are rotated and given signs. */
typedef struct {
    int64_t number;
    double sketch[LENGTH];
} Block;

static void add_products(Block *block, const Tables *tables, size_t row, const double *products)
{
    for (int vector = 0; vector < VECTORS; vector++)
        block->sketch[tables->row_numbers[row][vector]] += tables->row_signs[row][vector] * products[vector];
}

static void add_rest(double *sketch, const Tables *tables, size_t row, const double *products)
{
    for (size_t number = 0; number < LENGTH; number++)
        sketch[(row + number) % LENGTH] += tables->rest_signs[row][number] * products[number];
}

/* SplitMix64, as in arrays/sketch_map.py. */
static uint64_t random_bits(uint64_t number)
{
    uint64_t z = (number + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static void finish_block(Block *block, double *sketch)
{
    const uint64_t bits = block->number ? random_bits((UINT64_C(1) << 32) + (uint64_t)block->number) : 0xFFFF;
    for (unsigned number = 0; number < LENGTH; number++) {
        sketch[(number + (unsigned)(bits >> 60)) % LENGTH] +=
            bits >> number & 1 ? block->sketch[number] : -block->sketch[number];
        block->sketch[number] = 0;
    }
    block->number++;
}

/* The sketch of groups of rows and of what is left. Where one instruction multiplied and added, it would round once: on
 * some processors only. */
static void join_parts(const double *grouped, double length, const double *rest, double *sketch)
{
    for (int number = 0; number < LENGTH; number++) {
        const volatile double scaled = grouped[number] * length;
        sketch[number] = scaled + rest[number];
    }
}

/* Copies the next elements to `room`, and goes on behind them. */
static void gather(Elements *elements, size_t count, char *room)
{
    const size_t itemsize = elements->itemsize;
    const int last = elements->dimensions - 1;
    while (count) {
        const Py_ssize_t stride = elements->strides[last];
        size_t run = (size_t)(elements->shape[last] - elements->index[last]);
        run = run < count ? run : count;
        const char *next = elements->next;
#define COPY(SIZE)                                          \
    for (size_t i = 0; i < run; i++, next += stride)        \
        memcpy(room + i * (SIZE), next, (SIZE))
        if (stride == (Py_ssize_t)itemsize) {
            memcpy(room, next, run * itemsize);
            next += run * itemsize;
        } else if (itemsize == 4) {
            COPY(4);
        } else if (itemsize == 8) {
            COPY(8);
        } else {
            COPY(itemsize);
        }
#undef COPY
        elements->next = next;
        elements->index[last] += (Py_ssize_t)run;
        room += run * itemsize;
        count -= run;
        for (int axis = last; axis > 0 && elements->index[axis] == elements->shape[axis]; axis--) {
            elements->next += elements->strides[axis - 1] - elements->shape[axis] * elements->strides[axis];
            elements->index[axis] = 0;
            elements->index[axis - 1]++;
        }
    }
}

/* Where the next elements lie one behind the other; `room` has place for them. */
static const char *next_raw(Elements *elements, size_t count, char *room)
{
    if (!elements->contiguous) {
        gather(elements, count, room);
        return room;
    }
    const char *raw = elements->next;
    elements->next += count * elements->itemsize;
    return raw;
}

/* Compilers that do not know these take loops apart, which costs time alone. */
#if defined(__clang__)
#define KEEP_LOOP _Pragma("clang loop unroll(disable)")
#elif defined(__GNUC__)
#define KEEP_LOOP _Pragma("GCC unroll 1")
#else
#define KEEP_LOOP
#define __builtin_prefetch(address)
#endif

#define TARGET
#define SUFFIX plain
#define TOGETHER 1
#include "one_pass_target.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define CHOOSES 1
#define TARGET __attribute__((target("avx2,fma")))
#define SUFFIX avx2
#define TOGETHER 1
#include "one_pass_target.h"
#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,fma")))
#define SUFFIX avx512
#define TOGETHER 8
#include "one_pass_target.h"
#endif

typedef void Pass(Elements *, const Tables *, Figures *);

/* The pass over rows of floats or of doubles, for this processor. */
static Pass *chosen(int wide)
{
#ifdef CHOOSES
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
        return wide ? pass_double_avx512 : pass_float_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return wide ? pass_double_avx2 : pass_float_avx2;
#endif
    return wide ? pass_double_plain : pass_float_plain;
}

/* Returns whether the figures have a sketch. */
static int compute(const Elements *elements, const Tables *tables, Figures *figures)
{
    int wide = strchr(FLOATS, elements->kind) == NULL;
    for (;;) {
        Elements reading = *elements;
        memset(figures, 0, sizeof *figures);
        chosen(wide)(&reading, tables, figures);
        if (isnan(figures->squares)) /* there is a NaN: infinities alone have infinite squares */
            figures->maximum = figures->minimum = NAN;
        const double largest = fmax(figures->maximum, -figures->minimum);
        if (tables == NULL || isnan(figures->squares) || isinf(largest))
            return 0;
        if (largest <= (wide ? LARGEST_DOUBLE : LARGEST_FLOAT))
            return 1;
        if (wide)
            return 0;
        wide = 1;
    }
}

/* Adds an axis, outermost first, to those before it; one that goes on where the last begins becomes one with it. */
static void add_axis(Elements *elements, Py_ssize_t length, Py_ssize_t stride)
{
    if (length == 1)
        return;
    if (elements->dimensions) {
        const int last = elements->dimensions - 1;
        if (elements->strides[last] == length * stride) {
            elements->shape[last] *= length;
            elements->strides[last] = stride;
            return;
        }
    }
    elements->shape[elements->dimensions] = length;
    elements->strides[elements->dimensions] = stride;
    elements->dimensions++;
}

/* `unit` is the bytes of one in `strides`. */
static int read_axes(Elements *elements, PyObject *shape, PyObject *strides, Py_ssize_t unit)
{
    const Py_ssize_t dimensions = PyTuple_Size(shape);
    if (dimensions < 0 || (strides != Py_None && PyTuple_Size(strides) != dimensions)) {
        PyErr_SetString(PyExc_ValueError, "shape and strides are two tuples of the same length");
        return -1;
    }
    if (dimensions > MOST_DIMENSIONS) {
        PyErr_SetString(PyExc_ValueError, "too many dimensions");
        return -1;
    }
    elements->count = 1;
    for (Py_ssize_t axis = 0; axis < dimensions; axis++) {
        const Py_ssize_t length = PyLong_AsSsize_t(PyTuple_GetItem(shape, axis));
        Py_ssize_t stride = 0;
        if (strides != Py_None)
            stride = PyLong_AsSsize_t(PyTuple_GetItem(strides, axis)) * unit;
        if (PyErr_Occurred())
            return -1;
        if (length <= 0 || elements->count > (size_t)PY_SSIZE_T_MAX / (size_t)length) {
            PyErr_SetString(PyExc_ValueError, "there are no elements, or too many");
            return -1;
        }
        elements->count *= (size_t)length;
        if (strides != Py_None)
            add_axis(elements, length, stride);
    }
    elements->contiguous = !elements->dimensions ||
        (elements->dimensions == 1 && elements->strides[0] == (Py_ssize_t)elements->itemsize);
    return 0;
}

static size_t size_of(char kind)
{
    return strchr("bB?t", kind) ? 1 : strchr("hHeE", kind) ? 2 : strchr("iIf", kind) ? 4 : 8;
}

/* The address of the bytes of an argument, which are as many; NULL for None, and with an error set. */
static const void *bytes_of(PyObject *argument, size_t size)
{
    char *bytes = NULL;
    Py_ssize_t found = 0;
    if (argument == Py_None || PyBytes_AsStringAndSize(argument, &bytes, &found) < 0)
        return NULL;
    if ((size_t)found != size) {
        PyErr_SetString(PyExc_ValueError, "a table of another size");
        return NULL;
    }
    return bytes;
}

/* Reads what both functions are given first: where the elements lie, and the tables. */
static int read_elements(PyObject *const *arguments, Elements *elements, const Tables **tables)
{
    memset(elements, 0, sizeof *elements);
    elements->next = PyLong_AsVoidPtr(arguments[0]);
    const long kind = PyLong_AsLong(arguments[1]);
    *tables = bytes_of(arguments[4], sizeof(Tables));
    elements->values = bytes_of(arguments[5], 256 * sizeof(float));
    if (PyErr_Occurred())
        return -1;
    elements->kind = (char)kind;
    if (kind <= 0 || kind > 127 || (!strchr(FLOATS, elements->kind) && !strchr(DOUBLES, elements->kind)) ||
        elements->next == NULL || (elements->kind == 't' && elements->values == NULL)) {
        PyErr_SetString(PyExc_ValueError, "no memory, or elements of an unknown kind");
        return -1;
    }
    elements->itemsize = size_of(elements->kind);
    return read_axes(elements, arguments[2], arguments[3], 1);
}

/* As `compute`; other threads of Python may run meanwhile. */
static int compute_unlocked(const Elements *elements, const Tables *tables, Figures *found)
{
    int sketched;
    if (elements->count < LONG) {
        sketched = compute(elements, tables, found);
    } else {
        Py_BEGIN_ALLOW_THREADS
        sketched = compute(elements, tables, found);
        Py_END_ALLOW_THREADS
    }
    /* A zero has no sign in figures: which of several zeros is the largest would depend on their order. */
    found->maximum += 0.0;
    found->minimum += 0.0;
    found->total += 0.0;
    return sketched;
}

PyDoc_STRVAR(figures_doc,
"figures(address, kind, shape, strides, tables, values, first)\n"
"--\n\n"
"Return maximum, minimum, sum, sum of squares, and the sixteen numbers of the sketch as bytes, or None.\n\n"
"``kind`` is the number of a character, ``strides`` are in bytes, or None where the elements lie one behind the other\n"
"in C order. Without ``tables`` there is no sketch; ``values`` are the numbers that the bytes of kind t stand for.\n"
"``first`` elements of the same tensor lie before.");

static PyObject *figures(PyObject *module, PyObject *const *arguments, Py_ssize_t given)
{
    (void)module;
    if (given != 7) {
        PyErr_SetString(PyExc_TypeError, "figures takes seven arguments");
        return NULL;
    }
    Elements elements;
    const Tables *tables;
    if (read_elements(arguments, &elements, &tables) < 0)
        return NULL;
    elements.first = PyLong_AsLongLong(arguments[6]);
    if (PyErr_Occurred())
        return NULL;
    if (elements.first < 0 || elements.first % BLOCK) {
        PyErr_SetString(PyExc_ValueError, "what lies before are whole blocks");
        return NULL;
    }
    Figures found;
    const int sketched = compute_unlocked(&elements, tables, &found);
    return Py_BuildValue("(ddddy#)", found.maximum, found.minimum, found.total, found.squares,
                         sketched ? (const char *)found.sketch : NULL, (Py_ssize_t)sizeof found.sketch);
}

#include "one_pass_text.h"
#include "one_pass_tensors.h"

PyDoc_STRVAR(leaf_doc,
"leaf(address, kind, shape, strides, tables, values, frame, dumps)\n"
"--\n\n"
"Return the texts of Max, Min, Mean, Norm and sketch of the elements, with the parts of ``frame`` around them.\n\n"
"These are seven bytes objects: what stands before each statistic, behind the last, before a sketch, which is left\n"
"out where there is none, and at the end. ``dumps`` gives floats as JSON. The other arguments are those of `figures`.");

static PyObject *leaf(PyObject *module, PyObject *const *arguments, Py_ssize_t given)
{
    (void)module;
    if (given != 8) {
        PyErr_SetString(PyExc_TypeError, "leaf takes eight arguments");
        return NULL;
    }
    Elements elements;
    const Tables *tables;
    if (read_elements(arguments, &elements, &tables) < 0)
        return NULL;
    return text_of(&elements, tables, arguments[6], PyTuple_Size(arguments[2]) == 0, arguments[7]);
}

PyDoc_STRVAR(leaves_doc,
"leaves(values, places, frames, tables, numbers, dumps)\n"
"--\n\n"
"Return the texts of the leaves of tensors and numbers in a list, with None for tensors whose memory is not told of.\n\n"
"None where there is anything else among them. ``places`` are the functions by which a framework tells where the\n"
"elements of its tensors lie (one_pass.Places), ``frames`` gives what stands around the figures of dtype, shape and\n"
"whether a gradient is required, ``numbers`` are the texts of None, and around a bool, an int and a float, ``dumps``\n"
"gives floats as JSON.");

static PyObject *leaves(PyObject *module, PyObject *const *arguments, Py_ssize_t given)
{
    (void)module;
    if (given != 6 || PyTuple_Size(arguments[1]) != PLACES || PyTuple_Size(arguments[4]) != NUMBERS) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "leaves takes six arguments, of which two are tuples of a certain length");
        return NULL;
    }
    const Tables *tables = bytes_of(arguments[3], sizeof(Tables));
    const int flat = PyErr_Occurred() ? -1 : are_flat(arguments[0], arguments[1]);
    if (flat < 0)
        return NULL;
    if (flat == 0)
        Py_RETURN_NONE;
    const Py_ssize_t length = PySequence_Size(arguments[0]);
    PyObject *found = length < 0 ? NULL : PyList_New(length);
    for (Py_ssize_t place = 0; found != NULL && place < length; place++) {
        PyObject *value = PySequence_GetItem(arguments[0], place);
        PyObject *text = value == NULL ? NULL : leaf_of(value, arguments + 1, tables);
        Py_XDECREF(value);
        if (text == NULL || PyList_SetItem(found, place, text) < 0)
            Py_CLEAR(found);
    }
    return found;
}

static PyMethodDef methods[] = {
    {"figures", (PyCFunction)(void (*)(void))figures, METH_FASTCALL, figures_doc},
    {"leaf", (PyCFunction)(void (*)(void))leaf, METH_FASTCALL, leaf_doc},
    {"leaves", (PyCFunction)(void (*)(void))leaves, METH_FASTCALL, leaves_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_one_pass", "Figures of tensors, in one pass over their memory.", 0, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__one_pass(void)
{
    return PyModuleDef_Init(&module);
}
