/* The leaves of a framework's tensors, which tell by the framework's own functions where their elements lie; and of
 * numbers. What is out of the ordinary is left to Python. */

/* The members of `one_pass.Places`. */
enum {
    TYPES, INSTEAD, EXPECTED, DTYPE, KINDS, STORAGE, BEGIN, HELD, OFFSET, CONTIGUOUS, SHAPE, STRIDES, ADDRESS, GRADIENT,
    PLACES
};

/* The texts around numbers: of None, before a bool, an int and a float, behind each. */
enum { NOTHING, BEFORE_BOOL, BEFORE_INT, BEFORE_FLOAT, BEHIND, NUMBERS };

/* A tensor, and what its framework has told of it so far. */
typedef struct {
    PyObject *tensor, *places, *kind, *shape, *strides;
    Elements elements;
} Told;

/* An attribute written in C is read in a third of the time that a function takes which reads it. */
static PyObject *asked(PyObject *function, PyObject *of)
{
    if (Py_TYPE(function) != &PyGetSetDescr_Type)
        return PyObject_CallFunctionObjArgs(function, of, NULL);
    const descrgetfunc get = (descrgetfunc)PyType_GetSlot(&PyGetSetDescr_Type, Py_tp_descr_get);
    return get(function, of, (PyObject *)Py_TYPE(of));
}

static PyObject *ask(PyObject *places, int which, PyObject *of)
{
    return asked(PyTuple_GetItem(places, which), of);
}

/* -1 with an error set; what is asked for is never negative. */
static Py_ssize_t ask_size(PyObject *places, int which, PyObject *of)
{
    PyObject *told = ask(places, which, of);
    const Py_ssize_t size = told == NULL ? -1 : PyLong_AsSsize_t(told);
    Py_XDECREF(told);
    return size;
}

/* Whether no attribute of the tensor's own stands in the place of what is asked for. The functions below return as this
 * one: 1, or 0 where Python has to look, or -1 with an error set. */
static int has_nothing_instead(const Told *told)
{
    PyObject *own = PyObject_GetAttrString(told->tensor, "__dict__"), *names = PyTuple_GetItem(told->places, INSTEAD);
    int nothing = own == NULL ? -1 : PyDict_Size(own) == 0;
    if (nothing == 0 && names != Py_None) {
        PyObject *apart = PyObject_CallMethod(names, "isdisjoint", "O", own);
        nothing = apart == NULL ? -1 : PyObject_IsTrue(apart);
        Py_XDECREF(apart);
    }
    Py_XDECREF(own);
    return nothing;
}

/* Whether it is of the common sort: pairs of a function and what it gives then. */
static int is_as_expected(const Told *told)
{
    PyObject *expected = PyTuple_GetItem(told->places, EXPECTED);
    for (Py_ssize_t i = 0, length = PyTuple_Size(expected); i < length; i++) {
        PyObject *pair = PyTuple_GetItem(expected, i);
        PyObject *found = asked(PyTuple_GetItem(pair, 0), told->tensor);
        if (found == NULL)
            return -1;
        const int same = found == PyTuple_GetItem(pair, 1);
        Py_DECREF(found);
        if (!same)
            return 0;
    }
    return 1;
}

/* Of what kind the elements are; `kind` is `one_pass.Kind`. */
static int read_kind(Told *told)
{
    PyObject *dtype = ask(told->places, DTYPE, told->tensor);
    if (dtype == NULL)
        return -1;
    told->kind = PyDict_GetItemWithError(PyTuple_GetItem(told->places, KINDS), dtype);
    Py_DECREF(dtype);
    if (told->kind == NULL)
        return PyErr_Occurred() ? -1 : 0;
    told->elements.kind = (char)PyLong_AsLong(PyTuple_GetItem(told->kind, 0));
    told->elements.itemsize = size_of(told->elements.kind);
    told->elements.values = bytes_of(PyTuple_GetItem(told->kind, 2), 256 * sizeof(float));
    return PyErr_Occurred() ? -1 : 1;
}

/* Whether there is any element; none has a shape that is not known. */
static int has_elements(PyObject *shape)
{
    for (Py_ssize_t axis = 0, axes = PyTuple_Size(shape); axis < axes; axis++)
        if (PyLong_AsSsize_t(PyTuple_GetItem(shape, axis)) <= 0)
            return PyErr_Occurred() ? -1 : 0;
    return PyErr_Occurred() ? -1 : 1;
}

/* A tuple; frameworks tell lists as well. */
static PyObject *ask_strides(const Told *told)
{
    PyObject *strides = ask(told->places, STRIDES, told->tensor);
    PyObject *tuple = strides == NULL ? NULL : PySequence_Tuple(strides);
    Py_XDECREF(strides);
    return tuple;
}

/* How the elements lie; large ones that do not lie one behind the other are for numpy. */
static int read_shape(Told *told)
{
    told->shape = ask(told->places, SHAPE, told->tensor);
    const int filled = told->shape == NULL ? -1 : has_elements(told->shape);
    if (filled <= 0)
        return filled;
    PyObject *contiguous = ask(told->places, CONTIGUOUS, told->tensor);
    const int straight = contiguous == NULL ? -1 : PyObject_IsTrue(contiguous);
    Py_XDECREF(contiguous);
    if (straight < 0)
        return -1;
    if (straight) {
        told->strides = Py_None;
        Py_INCREF(Py_None);
    } else if ((told->strides = ask_strides(told)) == NULL) {
        return -1;
    }
    if (read_axes(&told->elements, told->shape, told->strides, (Py_ssize_t)told->elements.itemsize) < 0)
        return -1;
    return straight || told->elements.count <= BLOCK;
}

/* The bytes from the first element to the end of the last. */
static Py_ssize_t extent(const Elements *elements)
{
    Py_ssize_t bytes = (Py_ssize_t)elements->itemsize;
    if (!elements->dimensions)
        return bytes * (Py_ssize_t)elements->count;
    for (int axis = 0; axis < elements->dimensions; axis++)
        bytes += (elements->shape[axis] - 1) * elements->strides[axis];
    return bytes;
}

/* Where the elements lie, if that is the tensor's own memory: its storage may have been made smaller, or freed. */
static int read_address(Told *told)
{
    PyObject *places = told->places, *storage = ask(places, STORAGE, told->tensor);
    if (storage == NULL)
        return -1;
    const Py_ssize_t begin = PyTuple_GetItem(places, BEGIN) == Py_None ? 1 : ask_size(places, BEGIN, storage);
    const Py_ssize_t held = begin == -1 ? -1 : ask_size(places, HELD, storage);
    const Py_ssize_t offset = held == -1 ? -1 : ask_size(places, OFFSET, told->tensor);
    Py_DECREF(storage);
    if (offset == -1)
        return -1;
    if (!begin || offset * (Py_ssize_t)told->elements.itemsize + extent(&told->elements) > held)
        return 0;
    PyObject *address = ask(places, ADDRESS, told->tensor);
    told->elements.next = address == NULL ? NULL : PyLong_AsVoidPtr(address);
    Py_XDECREF(address);
    return PyErr_Occurred() ? -1 : told->elements.next != NULL;
}

static int read_tensor(Told *told)
{
    int read = has_nothing_instead(told);
    if (read > 0)
        read = is_as_expected(told);
    if (read > 0)
        read = read_kind(told);
    if (read > 0)
        read = read_shape(told);
    return read > 0 ? read_address(told) : read;
}

/* What stands around the figures of the tensor's leaf. */
static PyObject *frame_of(const Told *told, PyObject *frames)
{
    PyObject *gradient = Py_None;
    if (PyTuple_GetItem(told->places, GRADIENT) == Py_None)
        Py_INCREF(gradient);
    else
        gradient = ask(told->places, GRADIENT, told->tensor);
    if (gradient == NULL)
        return NULL;
    PyObject *key = PyTuple_Pack(3, PyTuple_GetItem(told->kind, 3), told->shape, gradient);
    Py_DECREF(gradient);
    PyObject *frame = key == NULL ? NULL : PyObject_GetItem(frames, key);
    Py_XDECREF(key);
    return frame;
}

/* None where Python has to look. */
static PyObject *leaf_of_tensor(PyObject *tensor, PyObject *const *given, const Tables *tables)
{
    Told told = {.tensor = tensor, .places = given[0]};
    PyObject *leaf = NULL;
    const int read = read_tensor(&told);
    if (read == 0) {
        leaf = Py_None;
        Py_INCREF(leaf);
    } else if (read > 0) {
        PyObject *frame = frame_of(&told, given[1]);
        if (frame != NULL)
            leaf = text_of(&told.elements, tables, frame, PyTuple_Size(told.shape) == 0, given[4]);
        Py_XDECREF(frame);
    }
    Py_XDECREF(told.shape);
    Py_XDECREF(told.strides);
    return leaf;
}

static PyObject *joined(PyObject *before, const char *text, size_t length, PyObject *behind)
{
    char *first, *last;
    Py_ssize_t ahead, after;
    if (PyBytes_AsStringAndSize(before, &first, &ahead) < 0 || PyBytes_AsStringAndSize(behind, &last, &after) < 0)
        return NULL;
    PyObject *whole = PyBytes_FromStringAndSize(NULL, ahead + (Py_ssize_t)length + after);
    if (whole == NULL)
        return NULL;
    char *next = PyBytes_AsString(whole);
    memcpy(next, first, (size_t)ahead);
    memcpy(next + ahead, text, length);
    memcpy(next + ahead + length, last, (size_t)after);
    return whole;
}

/* The same of a number, as `json_text` writes it. */
static PyObject *leaf_of_number(PyObject *value, PyObject *numbers)
{
    if (value == Py_None) {
        PyObject *nothing = PyTuple_GetItem(numbers, NOTHING);
        Py_INCREF(nothing);
        return nothing;
    }
    Text text;
    int before = BEFORE_BOOL;
    if (PyBool_Check(value)) {
        set_text(&text, value == Py_True ? "true" : "false");
    } else if (PyFloat_CheckExact(value)) {
        before = BEFORE_FLOAT;
        if (set_number(&text, PyFloat_AsDouble(value)) < 0)
            return NULL;
    } else {
        int overflow = 0;
        const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow)
            Py_RETURN_NONE;
        before = BEFORE_INT;
        text.length = (size_t)PyOS_snprintf(text.text, sizeof text.text, "%lld", number);
    }
    return joined(PyTuple_GetItem(numbers, before), text.text, text.length, PyTuple_GetItem(numbers, BEHIND));
}

static int is_number(PyObject *value)
{
    return value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value);
}

/* Whether the values are numbers and common tensors alone. */
static int are_flat(PyObject *values, PyObject *places)
{
    PyObject *types = PyTuple_GetItem(places, TYPES);
    for (Py_ssize_t place = 0, length = PySequence_Size(values); place < length; place++) {
        PyObject *value = PySequence_GetItem(values, place);
        if (value == NULL)
            return -1;
        const int flat = is_number(value) ? 1 : PySet_Contains(types, (PyObject *)Py_TYPE(value));
        Py_DECREF(value);
        if (flat <= 0)
            return flat;
    }
    return PyErr_Occurred() ? -1 : 1;
}

/* `given` are the places, the frames, the tables, the numbers, and what gives floats as JSON. */
static PyObject *leaf_of(PyObject *value, PyObject *const *given, const Tables *tables)
{
    return is_number(value) ? leaf_of_number(value, given[3]) : leaf_of_tensor(value, given, tables);
}
