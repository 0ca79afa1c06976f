/* Members of a JSON object whose values are objects, taken apart without being parsed.
 *
 * Of a value its form is what is left without its floats and long texts: the calls of a function have few forms, of
 * which Python learns what they mean (alike_calls.py). Without this, all members are parsed. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
#include <string.h>

#include "../growing_text.h"

/* What stands in a form for a float and for a long text: characters that no JSON holds. */
enum { FLOAT = 1, TEXT = 2 };

/* Characters from which on a text is long; digits of an exponent, and before a fraction, from which on a number may be
 * beyond a double. */
enum { LONG = 40, BEYOND = 3, MANY = 200 };

static int put_one(Buffer *buffer, char one)
{
    return put(buffer, &one, 1);
}

/* The functions below return where something ends, or NULL where the text ends before or holds what none has. */
static const char *after_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at < end ? at : NULL;
}

/* Behind a string whose opening quote stands at ``at``. */
static const char *after_string(const char *at, const char *end, int *escaped)
{
    *escaped = 0;
    for (at++; at < end; at++) {
        if (*at == '"')
            return at + 1;
        if ((unsigned char)*at < ' ')
            return NULL;
        if (*at == '\\') {
            *escaped = 1;
            at++;
        }
    }
    return NULL;
}

static int is_digit(const char *at, const char *end)
{
    return at < end && *at >= '0' && *at <= '9';
}

static const char *after_digits(const char *at, const char *end)
{
    while (is_digit(at, end))
        at++;
    return at;
}

/* Behind a number; ``is_float``: it has a fraction or an exponent, and surely is a double. */
static const char *after_number(const char *at, const char *end, int *is_float)
{
    *is_float = 0;
    at += *at == '-';
    if (!is_digit(at, end))
        return at;
    const char *first = at;
    at = *at == '0' ? at + 1 : after_digits(at, end);
    const int is_small = at - first < MANY;
    if (at < end && *at == '.' && is_digit(at + 1, end)) {
        *is_float = is_small;
        at = after_digits(at + 1, end);
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        const char *digits = at + 1 + (at + 1 < end && (at[1] == '-' || at[1] == '+'));
        const char *last = after_digits(digits, end);
        if (last > digits) {
            *is_float = is_small && last - digits < BEYOND;
            at = last;
        }
    }
    return at;
}

/* What is taken of a member: where its name ends, its form, and its floats and texts at the end of those before it. */
typedef struct {
    Buffer form, numbers;
    PyObject *texts;
} Parts;

/* Behind the value at ``at``; sets an error and returns NULL where memory is short. */
static const char *after_value(const char *at, const char *end, Parts *parts)
{
    int depth = 0, special;
    do {
        if (at >= end || (unsigned char)*at == FLOAT || (unsigned char)*at == TEXT)
            return NULL;
        const char *start = at;
        if (*at == '"') {
            if ((at = after_string(at, end, &special)) == NULL)
                return NULL;
            const size_t length = (size_t)(at - start) - 2;
            const char *next = length < LONG || special ? NULL : after_space(at, end);
            if (next != NULL && *next != ':') {
                PyObject *text = PyUnicode_FromStringAndSize(start + 1, (Py_ssize_t)length);
                const int failed = text == NULL || PyList_Append(parts->texts, text) < 0;
                Py_XDECREF(text);
                if (failed || put_one(&parts->form, TEXT) < 0)
                    return NULL;
                continue;
            }
        }
        else if (*at == '-' || is_digit(at, end)) {
            at = after_number(at, end, &special);
            if (special) {
                if (put(&parts->numbers, start, (size_t)(at - start)) < 0 || put_one(&parts->numbers, ',') < 0 ||
                    put_one(&parts->form, FLOAT) < 0)
                    return NULL;
                continue;
            }
        }
        else {
            do {
                depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
                at++;
            } while (depth > 0 && at < end && *at > TEXT && *at != '"' && *at != '-' && !is_digit(at, end));
        }
        if (put(&parts->form, start, (size_t)(at - start)) < 0)
            return NULL;
    } while (depth > 0);
    return at;
}

/* Begins a form with the last word of a name that is no number, and its dot: it tells what the value is. */
static int begin_form(Buffer *form, const char *name, const char *end)
{
    const char *last = end;
    while (last > name && last[-1] >= '0' && last[-1] <= '9')
        last--;
    if (last < end && last > name && last[-1] == '.')
        end = last - 1;
    for (last = end; last > name && *--last != '.';)
        ;
    form->length = 0;
    return put(form, last, (size_t)(end - last));
}

/* Takes one member that begins at ``at``: behind it; NULL where it is not whole, or nothing that is taken here. */
static const char *member(const char *at, const char *end, Parts *parts, const char **name_end)
{
    int escaped;
    const char *name = at + 1;
    if (*at != '"' || (at = after_string(at, end, &escaped)) == NULL || escaped)
        return NULL;
    *name_end = at - 1;
    if (begin_form(&parts->form, name, at - 1) < 0)
        return NULL;
    if ((at = after_space(at, end)) == NULL || *at != ':' || (at = after_space(at + 1, end)) == NULL || *at != '{')
        return NULL;
    if ((at = after_value(at, end, parts)) == NULL || (at = after_space(at, end)) == NULL)
        return NULL;
    return *at == ',' || *at == '}' ? at : NULL;
}

static int append(PyObject *list, PyObject *owned)
{
    const int failed = owned == NULL || PyList_Append(list, owned) < 0;
    Py_XDECREF(owned);
    return failed ? -1 : 0;
}

PyDoc_STRVAR(take_doc,
"take(text, place, forms, names, codes, texts)\n"
"--\n\n"
"Take members from ``place`` on as long as their forms are known, which ``forms`` has codes of.\n\n"
"Their names and codes and their long texts are appended to the lists. Return where that ends, their floats as text with\n"
"a comma behind each, and of a whole member that follows and has no known form: that form and where it ends, else None\n"
"and 0.");

static PyObject *take(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *text, *forms, *names, *codes, *result = NULL, *form = NULL;
    Py_ssize_t place, size, after = 0;
    Parts parts = {{NULL, 0, 0}, {NULL, 0, 0}, NULL};
    if (!PyArg_ParseTuple(arguments, "UnO!O!O!O!", &text, &place, &PyDict_Type, &forms, &PyList_Type, &names,
                          &PyList_Type, &codes, &PyList_Type, &parts.texts))
        return NULL;
    const char *start = PyUnicode_AsUTF8AndSize(text, &size), *name_end = NULL;
    if (start == NULL)
        return NULL;
    const char *at = start + place, *taken = at, *end = start + size;
    size_t numbers = 0;
    Py_ssize_t long_texts = PyList_Size(parts.texts);
    while (place >= 0 && at < end) {
        const char *next = member(at, end, &parts, &name_end);
        if (next == NULL)
            break;
        form = PyBytes_FromStringAndSize(parts.form.text, (Py_ssize_t)parts.form.length);
        PyObject *code = form == NULL ? NULL : PyDict_GetItemWithError(forms, form);
        if (code == NULL || code == Py_None) {
            after = next - start;
            if (code == Py_None)
                Py_CLEAR(form);
            break;
        }
        Py_CLEAR(form);
        if (append(names, PyUnicode_FromStringAndSize(at + 1, name_end - at - 1)) < 0 || PyList_Append(codes, code) < 0)
            break;
        taken = next;
        numbers = parts.numbers.length;
        long_texts = PyList_Size(parts.texts);
        if (*next != ',' || (at = after_space(next + 1, end)) == NULL)
            break;
    }
    if (!PyErr_Occurred() && PyList_SetSlice(parts.texts, long_texts, PyList_Size(parts.texts), NULL) == 0)
        result = Py_BuildValue("ny#On", (Py_ssize_t)(taken - start), parts.numbers.text ? parts.numbers.text : "",
                               (Py_ssize_t)numbers, form ? form : Py_None, after);
    Py_XDECREF(form);
    PyMem_Free(parts.form.text);
    PyMem_Free(parts.numbers.text);
    return result;
}

static PyMethodDef methods[] = {
    {"take", take, METH_VARARGS, take_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_members", "Members of objects taken apart.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__members(void)
{
    return PyModuleDef_Init(&module);
}
