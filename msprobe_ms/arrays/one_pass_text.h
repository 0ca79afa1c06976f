/* Figures as text, and the leaf of a tensor made of them. */

/* What stands around the texts of a leaf: before each statistic, behind the last, before the sketch, at the end. */
enum { STATISTICS = 4, PARTS = STATISTICS + 3 };

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

/* The digits of a number in JSON: the first of them is none of 0, and the point stands behind so many of them. */
typedef struct {
    int negative, count, point;
    char digits[32];
} Decimal;

/* Returns whether what is there is a number of no more digits than have room; the text ends with none of a number. */
static int read_decimal(Decimal *number, const char *json)
{
    int behind = 0, zeros = 0;
    memset(number, 0, sizeof *number);
    if ((number->negative = *json == '-'))
        json++;
    for (; (*json >= '0' && *json <= '9') || *json == '.'; json++) {
        if (*json == '.') {
            behind = 1;
            continue;
        }
        if (*json == '0') {
            zeros++;
            number->point += number->count ? !behind : -behind;
            continue;
        }
        for (zeros = number->count ? zeros : 0; zeros; zeros--) {
            if (number->count == sizeof number->digits)
                return 0;
            number->digits[number->count++] = '0';
        }
        if (number->count == sizeof number->digits)
            return 0;
        number->digits[number->count++] = *json;
        number->point += !behind;
    }
    if (*json == 'e' || *json == 'E')
        number->point += atoi(json + 1);
    return json[-1] >= '0' && json[-1] <= '9';
}

static void add(Text *text, const char *characters, int length)
{
    memcpy(text->text + text->length, characters, (size_t)length);
    text->length += (size_t)length;
}

/* As Python writes it: with an exponent below 1e-4 and from 1e16 on. */
static void set_decimal(Text *text, const Decimal *number)
{
    static const char zeros[] = "0000000000000000";
    const int count = number->count, point = number->point;
    text->length = 0;
    if (number->negative)
        add(text, "-", 1);
    if (!count) {
        add(text, "0.0", 3);
    } else if (point <= -4 || point > 16) {
        add(text, number->digits, 1);
        if (count > 1) {
            add(text, ".", 1);
            add(text, number->digits + 1, count - 1);
        }
        char exponent[16];
        add(text, exponent, PyOS_snprintf(exponent, sizeof exponent, "e%+03d", point - 1));
    } else if (point <= 0) {
        add(text, "0.", 2);
        add(text, zeros, -point);
        add(text, number->digits, count);
    } else if (point < count) {
        add(text, number->digits, point);
        add(text, ".", 1);
        add(text, number->digits + point, count - point);
    } else {
        add(text, number->digits, count);
        add(text, zeros, point - count);
        add(text, ".0", 2);
    }
}

/* The same as `set_number` of each, several times as fast: `dumps` gives a tuple of floats as JSON. */
static int set_numbers(Text *texts, const double *numbers, int count, PyObject *dumps)
{
    PyObject *given = PyTuple_New(count), *found = NULL;
    char *json = NULL;
    int set = 0;
    for (int i = 0; given != NULL && i < count; i++) {
        PyObject *number = PyFloat_FromDouble(numbers[i]);
        if (number == NULL || PyTuple_SetItem(given, i, number) < 0)
            Py_CLEAR(given);
    }
    if (given != NULL && (found = PyObject_CallFunctionObjArgs(dumps, given, NULL)) != NULL)
        json = PyBytes_AsString(found);
    for (; json != NULL && set < count; set++) {
        Decimal number;
        json = *json == '[' || *json == ',' ? json + 1 : json;
        if (isfinite(numbers[set]) && read_decimal(&number, json))
            set_decimal(&texts[set], &number);
        else if (set_number(&texts[set], numbers[set]) < 0)
            break;
        json += strcspn(json, ",]");
    }
    Py_XDECREF(given);
    Py_XDECREF(found);
    return set == count ? 0 : -1;
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
static int set_statistics(Text *texts, const Figures *found, const Elements *elements, int is_scalar, PyObject *dumps)
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
    const double numbers[] = {found->maximum, found->minimum, mean, norm};
    return set_numbers(texts, numbers, STATISTICS, dumps);
}

/* The text of a leaf: the parts of `frame` in their order, each with the text that follows it. */
static PyObject *text_of(const Elements *elements, const Tables *tables, PyObject *frame, int is_scalar, PyObject *dumps)
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
    if (set_statistics(texts, &found, elements, is_scalar, dumps) < 0)
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
