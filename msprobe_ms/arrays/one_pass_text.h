/* Figures as text, and the leaf of a tensor made of them. */

/* Text of at most `LONGEST` characters: a number in Python's shortest form, or a sketch. */
enum { LONGEST = 176 };

typedef struct {
    size_t length;
    char text[LONGEST];
} Text;

static void set_text(Text *text, const char *from)
{
    text->length = strlen(from);
    memcpy(text->text, from, text->length);
}

static int set_number(Text *text, double number)
{
    if (isnan(number) || isinf(number)) {
        set_text(text, isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity");
        return 0;
    }
    char *shortest = PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
    if (shortest == NULL)
        return -1;
    set_text(text, shortest);
    PyMem_Free(shortest);
    return 0;
}

/* As `sketch.text`, in quotes: base64 of float32, or of the doubles where these are exact or too large. */
static void set_sketch(Text *text, const double *sketch, int exact)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char raw[LENGTH * sizeof(double)];
    float narrow[LENGTH];
    size_t size = sizeof(double) * LENGTH, length = 0;
    for (int number = 0; number < LENGTH; number++) {
        narrow[number] = (float)sketch[number];
        exact = exact || isinf(narrow[number]);
    }
    memcpy(raw, sketch, size);
    text->text[length++] = '"';
    if (!exact) {
        size = sizeof narrow;
        memcpy(raw, narrow, size);
    }
    for (size_t i = 0; i < size; i += 3) {
        const unsigned second = i + 1 < size ? raw[i + 1] : 0, third = i + 2 < size ? raw[i + 2] : 0;
        const unsigned bits = (unsigned)raw[i] << 16 | second << 8 | third;
        text->text[length++] = digits[bits >> 18];
        text->text[length++] = digits[bits >> 12 & 63];
        text->text[length++] = i + 1 < size ? digits[bits >> 6 & 63] : '=';
        text->text[length++] = i + 2 < size ? digits[bits & 63] : '=';
    }
    text->text[length++] = '"';
    text->length = length;
}

/* The texts of Max, Min, Mean and Norm, as `statistics` defines them. */
static int set_statistics(Text *texts, const Figures *found, const Elements *elements, int is_scalar)
{
    if (elements->kind == '?') {
        set_text(&texts[0], found->maximum > 0 ? "true" : "false");
        set_text(&texts[1], found->minimum > 0 ? "true" : "false");
        set_text(&texts[2], "null");
        set_text(&texts[3], "null");
        return 0;
    }
    const double mean = is_scalar ? found->maximum : found->total / (double)elements->count;
    const double norm = is_scalar ? found->maximum : sqrt(found->squares);
    return set_number(&texts[0], found->maximum) < 0 || set_number(&texts[1], found->minimum) < 0 ||
                   set_number(&texts[2], mean) < 0 || set_number(&texts[3], norm) < 0
               ? -1
               : 0;
}

/* What stands around the texts of a leaf: before each statistic, behind the last, before the sketch, at the end. */
enum { STATISTICS = 4, PARTS = STATISTICS + 3 };

/* The text of a leaf: the parts of `frame` in their order, each with the text that follows it. */
static PyObject *text_of(const Elements *elements, const Tables *tables, PyObject *frame, int is_scalar)
{
    char *parts[PARTS];
    Py_ssize_t lengths[PARTS];
    if (PyTuple_Size(frame) != PARTS) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a frame has seven parts");
        return NULL;
    }
    for (int part = 0; part < PARTS; part++)
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(frame, part), &parts[part], &lengths[part]) < 0)
            return NULL;
    Figures found;
    Text texts[STATISTICS + 1];
    const int sketched = compute_unlocked(elements, tables, &found);
    if (set_statistics(texts, &found, elements, is_scalar) < 0)
        return NULL;
    if (sketched)
        set_sketch(&texts[STATISTICS], found.sketch, strchr(DOUBLES, elements->kind) != NULL);
    else
        texts[STATISTICS].length = 0, lengths[STATISTICS + 1] = 0;
    const Text none = {0};
    const Text *following[PARTS] = {&texts[0], &texts[1], &texts[2], &texts[3], &none, &texts[4], &none};
    Py_ssize_t size = 0;
    for (int part = 0; part < PARTS; part++)
        size += lengths[part] + (Py_ssize_t)following[part]->length;
    PyObject *whole = PyBytes_FromStringAndSize(NULL, size);
    if (whole == NULL)
        return NULL;
    char *next = PyBytes_AsString(whole);
    for (int part = 0; part < PARTS; part++) {
        memcpy(next, parts[part], (size_t)lengths[part]);
        next += lengths[part];
        memcpy(next, following[part]->text, following[part]->length);
        next += following[part]->length;
    }
    return whole;
}
