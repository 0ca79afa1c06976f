/* A tensor file from what stands before its elements, these as they lie in memory, and what stands behind.
 *
 * tensor_files.py does the same in Python where this is not built. Here nothing that a signal brings comes in between,
 * and no object is made for each step. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Bytes compared at a time: they stay in the processor's nearest cache. */
enum { PIECE = 1 << 14 };

/* The first number that is none of standard input, output and error. */
enum { FIRST = 3 };

/* Opens a file; where the process has closed those of its terminal, under a number that nobody prints to. */
static int opened(int folder, const char *name, int flags, unsigned mode)
{
    const int file = openat(folder, name, flags | O_CLOEXEC, mode);
    if (file < 0 || file >= FIRST)
        return file;
    const int higher = fcntl(file, F_DUPFD_CLOEXEC, FIRST), why = errno;
    close(file);
    if (higher < 0 && flags & O_CREAT)
        unlinkat(folder, name, 0);
    errno = why;
    return higher;
}

/* Writes parts one behind the other, in one call as a rule: more take longer. */
static int put(int file, struct iovec *parts, int count)
{
    while (count) {
        ssize_t written = writev(file, parts, count);
        if (written < 0 && errno != EINTR)
            return -1;
        for (written = written < 0 ? 0 : written; count && (size_t)written >= parts->iov_len; parts++, count--)
            written -= (ssize_t)parts->iov_len;
        if (count) {
            parts->iov_base = (char *)parts->iov_base + written;
            parts->iov_len -= (size_t)written;
        }
    }
    return 0;
}

PyDoc_STRVAR(replace_doc,
"replace(folder, temporary, name, mode, exact, head, address, size, tail)\n"
"--\n\n"
"Write ``head``, ``size`` bytes at ``address`` and ``tail`` into ``temporary``, and have that as ``name``.\n\n"
"``folder`` is the descriptor of the folder that names start from; ``exact``: the mode is set whatever the umask says.\n"
"Raises OSError, and has removed the file.");

static PyObject *replace(PyObject *module, PyObject *arguments)
{
    (void)module;
    int folder, exact, done = -1;
    unsigned mode;
    const char *temporary, *name, *head, *tail;
    Py_ssize_t before, after;
    unsigned long long address, size;
    if (!PyArg_ParseTuple(arguments, "iyyIpy#KKy#", &folder, &temporary, &name, &mode, &exact, &head, &before, &address,
                          &size, &tail, &after))
        return NULL;
    struct iovec parts[] = {
        {(void *)(uintptr_t)head, (size_t)before},
        {(void *)(uintptr_t)address, (size_t)size},
        {(void *)(uintptr_t)tail, (size_t)after},
    };
    Py_BEGIN_ALLOW_THREADS
    const int file = opened(folder, temporary, O_WRONLY | O_CREAT | O_EXCL, mode);
    if (file >= 0) {
        const int refused = exact && fchmod(file, mode) < 0 && errno != EPERM; /* by a disk that knows no permissions */
        done = refused || put(file, parts, 3) < 0;
        const int why = errno;
        if (close(file) < 0 && !done)
            done = -1;
        else
            errno = why;
        if (!done)
            done = renameat(folder, temporary, folder, name);
        if (done) {
            const int first = errno; /* what went wrong first is what counts */
            unlinkat(folder, temporary, 0);
            errno = first;
        }
    }
    Py_END_ALLOW_THREADS
    if (done)
        return PyErr_SetFromErrnoWithFilename(PyExc_OSError, name);
    Py_RETURN_NONE;
}

/* Whether a regular file of a certain length holds certain bytes from a place on. */
static int is_same(int file, off_t length, off_t place, const char *bytes, size_t size)
{
    char room[PIECE];
    struct stat found;
    if (fstat(file, &found) < 0 || !S_ISREG(found.st_mode) || found.st_size != length)
        return 0;
    while (size) {
        const ssize_t read = pread(file, room, size < PIECE ? size : PIECE, place);
        if (read < 0 && errno == EINTR)
            continue;
        if (read <= 0 || memcmp(room, bytes, (size_t)read))
            return 0;
        bytes += read;
        place += read;
        size -= (size_t)read;
    }
    return 1;
}

PyDoc_STRVAR(holds_doc,
"holds(folder, name, before, address, size, after)\n"
"--\n\n"
"Return whether a file has the ``size`` bytes at ``address`` behind ``before`` others and before ``after``.\n\n"
"False for one that cannot be read.");

static PyObject *holds(PyObject *module, PyObject *arguments)
{
    (void)module;
    int folder, same = 0;
    const char *name;
    unsigned long long before, address, size, after;
    if (!PyArg_ParseTuple(arguments, "iyKKKK", &folder, &name, &before, &address, &size, &after))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    const int file = opened(folder, name, O_RDONLY | O_NONBLOCK, 0);
    if (file >= 0) {
        const off_t length = (off_t)(before + size + after);
        same = is_same(file, length, (off_t)before, (const char *)(uintptr_t)address, (size_t)size);
        close(file);
    }
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(same);
}

static PyMethodDef methods[] = {
    {"replace", replace, METH_VARARGS, replace_doc},
    {"holds", holds, METH_VARARGS, holds_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_whole_files", "Files made and compared in one call.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__whole_files(void)
{
    return PyModuleDef_Init(&module);
}
