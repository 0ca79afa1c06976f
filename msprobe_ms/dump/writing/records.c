/* Records of a journal; and the payload of an entry's, whose fields are made of leaves that are text already.
 *
 * journal.py and json_text.py define both, and make them where this is not built or where there is anything else. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../growing_text.h"

/* As json_text.py indents a field and its members. */
#define FIELD "   "
#define MEMBER "\n    "
#define END_OF_FIELD "\n   "

/* Bytes before the kind of a record: two numbers. */
enum { HEAD = 8 };

/* Of Python's own headers only later ones have it where the interface is limited. */
enum { READ_ONLY = 0x100 };

/* The functions below return 1, or 0 for what Python has to look at, or -1 with an error set. */
static int put_string(Buffer *buffer, const char *text)
{
    return put(buffer, text, strlen(text));
}

/* A text in quotes that needs no escapes. */
static int put_quoted(Buffer *buffer, PyObject *text)
{
    Py_ssize_t length;
    if (!PyUnicode_Check(text))
        return 0;
    const char *characters = PyUnicode_AsUTF8AndSize(text, &length);
    if (characters == NULL) { /* half characters */
        PyErr_Clear();
        return 0;
    }
    for (Py_ssize_t i = 0; i < length; i++)
        if (characters[i] < ' ' || characters[i] > '~' || characters[i] == '"' || characters[i] == '\\')
            return 0;
    const int done = put(buffer, "\"", 1) > 0 && put(buffer, characters, (size_t)length) > 0;
    return done ? put(buffer, "\"", 1) : -1;
}

static int put_number(Buffer *buffer, Py_ssize_t number)
{
    char digits[32];
    PyOS_snprintf(digits, sizeof digits, "%zd", number);
    return put_string(buffer, digits);
}

/* A member of a field: a leaf that is text, or nothing. */
static int put_member(Buffer *buffer, PyObject *leaf)
{
    char *text;
    Py_ssize_t length;
    if (leaf == Py_None)
        return put_string(buffer, "null");
    if (!PyBytes_CheckExact(leaf))
        return 0;
    return PyBytes_AsStringAndSize(leaf, &text, &length) < 0 ? -1 : put(buffer, text, (size_t)length);
}

static int put_list(Buffer *buffer, PyObject *leaves)
{
    const Py_ssize_t length = PyList_Size(leaves);
    int done = put_string(buffer, "[");
    for (Py_ssize_t i = 0; done > 0 && i < length; i++)
        if ((done = put_string(buffer, i ? "," MEMBER : MEMBER)) > 0)
            done = put_member(buffer, PyList_GetItem(leaves, i));
    return done > 0 ? put_string(buffer, length ? END_OF_FIELD "]" : "]") : done;
}

static int put_dict(Buffer *buffer, PyObject *leaves)
{
    PyObject *key, *leaf;
    Py_ssize_t next = 0;
    const Py_ssize_t length = PyDict_Size(leaves);
    int done = put_string(buffer, "{");
    for (int first = 1; done > 0 && PyDict_Next(leaves, &next, &key, &leaf); first = 0)
        if ((done = put_string(buffer, first ? MEMBER : "," MEMBER)) > 0 && (done = put_quoted(buffer, key)) > 0 &&
            (done = put_string(buffer, ": ")) > 0)
            done = put_member(buffer, leaf);
    return done > 0 ? put_string(buffer, length ? END_OF_FIELD "}" : "}") : done;
}

/* As `json_text.field_text`. */
static int put_field(Buffer *buffer, PyObject *name, PyObject *value)
{
    int done = put_string(buffer, FIELD);
    if (done > 0 && (done = put_quoted(buffer, name)) > 0)
        done = put_string(buffer, ": ");
    if (done <= 0)
        return done;
    if (PyList_CheckExact(value))
        return put_list(buffer, value);
    return PyDict_CheckExact(value) ? put_dict(buffer, value) : 0;
}

/* The texts of all fields; of each, its name and the length of its text are added to `lengths`, a list. */
static int put_fields(Buffer *texts, PyObject *fields, PyObject *lengths)
{
    for (Py_ssize_t i = 0, given = PySequence_Size(fields); i < given; i++) {
        PyObject *field = PySequence_GetItem(fields, i), *name = NULL, *value = NULL;
        const size_t before = texts->length;
        int done = -1;
        if (field != NULL && PyArg_ParseTuple(field, "OO", &name, &value))
            done = put_field(texts, name, value);
        PyObject *length = done > 0 ? PyLong_FromSize_t(texts->length - before) : NULL;
        if (done > 0 && (length == NULL || PyList_Append(lengths, name) < 0 || PyList_Append(lengths, length) < 0))
            done = -1;
        Py_XDECREF(length);
        Py_XDECREF(field);
        if (done <= 0)
            return done;
    }
    return PyErr_Occurred() ? -1 : 1;
}

static int put_lengths(Buffer *head, PyObject *lengths)
{
    int done = put_string(head, "[");
    for (Py_ssize_t i = 0, given = PyList_Size(lengths); done > 0 && i < given; i += 2) {
        if ((done = put_string(head, i ? ",[" : "[")) > 0 && (done = put_quoted(head, PyList_GetItem(lengths, i))) > 0 &&
            (done = put_string(head, ",")) > 0 &&
            (done = put_number(head, PyLong_AsSsize_t(PyList_GetItem(lengths, i + 1)))) > 0)
            done = put_string(head, "]");
    }
    return done > 0 ? put_string(head, "]") : done;
}

/* The line before the texts. */
static int put_head(Buffer *head, PyObject *const *given, PyObject *lengths)
{
    PyObject *name = given[0], *parent = given[1], *site = given[2];
    int done = put_string(head, "[");
    if (done > 0 && (done = put_quoted(head, name)) > 0 && (done = put_string(head, ",")) > 0)
        done = parent == Py_None ? put_string(head, "null") : put_quoted(head, parent);
    if (done > 0 && (done = put_string(head, ",")) > 0)
        done = site == Py_None ? put_string(head, "null") : put_number(head, PyLong_AsSsize_t(site));
    if (done > 0 && (done = put_string(head, ",")) > 0)
        done = put_lengths(head, lengths);
    return done > 0 ? put_string(head, given[3] == Py_True ? ",true]\n" : ",false]\n") : done;
}

static PyObject *joined(const Buffer *head, const Buffer *texts)
{
    PyObject *whole = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(head->length + texts->length));
    if (whole == NULL)
        return NULL;
    char *next = PyBytes_AsString(whole);
    memcpy(next, head->text, head->length);
    if (texts->length)
        memcpy(next + head->length, texts->text, texts->length);
    return whole;
}

PyDoc_STRVAR(entry_doc,
"entry(name, parent, site, stays, fields)\n"
"--\n\n"
"Return what `journal.encode_entry` does, names and lengths of the texts by turns, and where the first of them begins.\n\n"
"None where a field is no list or dictionary of texts and None, or a name needs escapes.");

static PyObject *entry(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    (void)module;
    if (count != 5) {
        PyErr_SetString(PyExc_TypeError, "entry takes five arguments");
        return NULL;
    }
    Buffer head = {0}, texts = {0};
    PyObject *lengths = PyList_New(0), *found = NULL;
    int done = lengths == NULL ? -1 : put_fields(&texts, given[4], lengths);
    if (done > 0)
        done = put_head(&head, given, lengths);
    if (done > 0 && !PyErr_Occurred()) {
        PyObject *whole = joined(&head, &texts);
        if (whole != NULL)
            found = Py_BuildValue("(NNn)", whole, PyList_AsTuple(lengths), (Py_ssize_t)head.length);
    } else if (done == 0) {
        found = Py_None;
        Py_INCREF(found);
    }
    Py_XDECREF(lengths);
    PyMem_Free(head.text);
    PyMem_Free(texts.text);
    return found;
}

/* What `journal._record` gives, with the length and the checksum of kind and payload in front of them. */
static PyObject *record_of(PyObject *kind, PyObject *payload, PyObject *crc32)
{
    char *first, *rest;
    Py_ssize_t before, after;
    if (PyBytes_AsStringAndSize(kind, &first, &before) < 0 || PyBytes_AsStringAndSize(payload, &rest, &after) < 0)
        return NULL;
    PyObject *record = PyBytes_FromStringAndSize(NULL, HEAD + before + after);
    if (record == NULL)
        return NULL;
    char *body = PyBytes_AsString(record) + HEAD;
    memcpy(body, first, (size_t)before);
    memcpy(body + before, rest, (size_t)after);
    PyObject *view = PyMemoryView_FromMemory(body, before + after, READ_ONLY);
    PyObject *checksum = view == NULL ? NULL : PyObject_CallFunctionObjArgs(crc32, view, NULL);
    const unsigned long numbers[] = {
        (unsigned long)(before + after), checksum == NULL ? 0 : PyLong_AsUnsignedLong(checksum)
    };
    Py_XDECREF(view);
    Py_XDECREF(checksum);
    if (PyErr_Occurred()) {
        Py_DECREF(record);
        return NULL;
    }
    for (int byte = 0; byte < HEAD; byte++)
        body[byte - HEAD] = (char)(numbers[byte / 4] >> 8 * (byte % 4) & 0xFF);
    return record;
}

PyDoc_STRVAR(record_doc,
"record(place, kind, payload, crc32, checksum)\n"
"--\n\n"
"Return a record, where in the file it begins that is open at ``place``, and the checksum of all to its end.\n\n"
"``place`` are the number of a descriptor, and device and inode of its file. None where it is not that file's.");

static PyObject *record(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    (void)module;
    int file;
    unsigned long long device, inode;
    if (count != 5 || !PyArg_ParseTuple(given[0], "iKK", &file, &device, &inode)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "record takes five arguments");
        return NULL;
    }
    struct stat found;
    if (fstat(file, &found) < 0 || found.st_dev != device || found.st_ino != inode)
        Py_RETURN_NONE;
    const off_t end = lseek(file, 0, SEEK_END);
    if (end < 0)
        Py_RETURN_NONE;
    PyObject *whole = record_of(given[1], given[2], given[3]);
    PyObject *checksum = whole == NULL ? NULL : PyObject_CallFunctionObjArgs(given[3], whole, given[4], NULL);
    if (checksum == NULL) {
        Py_XDECREF(whole);
        return NULL;
    }
    return Py_BuildValue("(NLN)", whole, (long long)end, checksum);
}

static PyMethodDef methods[] = {
    {"record", (PyCFunction)(void (*)(void))record, METH_FASTCALL, record_doc},
    {"entry", (PyCFunction)(void (*)(void))entry, METH_FASTCALL, entry_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_records", "Records of entries in a journal.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__records(void)
{
    return PyModuleDef_Init(&module);
}
