/* Text that grows as it is put together, for the parts in C of this folder, which include it once. */

typedef struct {
    char *text;
    size_t length, room;
} Buffer;

/* Returns 1, or -1 with an error set. */
static int put(Buffer *buffer, const char *text, size_t length)
{
    if (buffer->length + length > buffer->room) {
        const size_t room = 2 * (buffer->length + length) + 256;
        char *larger = PyMem_Realloc(buffer->text, room);
        if (larger == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        buffer->text = larger;
        buffer->room = room;
    }
    memcpy(buffer->text + buffer->length, text, length);
    buffer->length += length;
    return 1;
}
