/* Elements of any type as rows of float or double, and the pass over them, for one set of instructions.
 *
 * SUFFIX   its name
 * TARGET   the attribute that asks for the instructions
 * TOGETHER how many rows have the lanes of their products added up at once: what the instructions have room for */

#define JOINED(name, suffix) name##_##suffix
#define JOIN(name, suffix) JOINED(name, suffix)

/* Numbers of `type`, which may lie anywhere, as others. */
#define EACH(type, expression)                                     \
    for (size_t i = 0; i < count; i++) {                           \
        type value;                                                \
        memcpy(&value, raw + i * sizeof value, sizeof value);      \
        row[i] = (expression);                                     \
    }                                                              \
    break

TARGET static inline float JOIN(as_float, SUFFIX)(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* By integers where a float would be subnormal: processors may be set to take those for 0. Masks in place of branches
 * let compilers make vectors of it. */
TARGET static inline float JOIN(from_half, SUFFIX)(uint16_t half)
{
    const int32_t bits = half & 0x7fff, bias = 112 << 23;
    const float small = (float)bits * 0x1p-24f;
    int32_t small_bits;
    memcpy(&small_bits, &small, sizeof small_bits);
    const int32_t large_bits = (bits << 13) + bias + (bias & -(bits >= 0x7c00));
    const int32_t is_small = -(bits < 0x400);
    const uint32_t size = (uint32_t)((small_bits & is_small) | (large_bits & ~is_small));
    return JOIN(as_float, SUFFIX)(size | (uint32_t)(half & 0x8000) << 16);
}

TARGET static const float *JOIN(next_float, SUFFIX)(Elements *elements, size_t count, float *row)
{
    char room[ROW * 8];
    const char *raw = next_raw(elements, count, room);
    switch (elements->kind) {
    case 'f':
        if ((uintptr_t)raw % sizeof(float) == 0 && raw != room)
            return (const float *)raw;
        memcpy(row, raw, count * sizeof(float));
        break;
    case 'e':
        EACH(uint16_t, JOIN(from_half, SUFFIX)(value));
    case 'E':
        EACH(uint16_t, JOIN(as_float, SUFFIX)((uint32_t)value << 16));
    case 't':
        EACH(uint8_t, elements->values[value]);
    case '?':
        EACH(uint8_t, value != 0);
    }
    return row;
}

TARGET static const double *JOIN(next_double, SUFFIX)(Elements *elements, size_t count, double *row)
{
    char room[ROW * 8];
    if (strchr(FLOATS, elements->kind) != NULL) {
        float narrow[ROW];
        const float *values = JOIN(next_float, SUFFIX)(elements, count, narrow);
        for (size_t i = 0; i < count; i++)
            row[i] = (double)values[i];
        return row;
    }
    const char *raw = next_raw(elements, count, room);
    switch (elements->kind) {
    case 'd':
        if ((uintptr_t)raw % sizeof(double) == 0 && raw != room)
            return (const double *)raw;
        memcpy(row, raw, count * sizeof(double));
        break;
    case 'b':
        EACH(int8_t, value);
    case 'B':
        EACH(uint8_t, value);
    case 'h':
        EACH(int16_t, value);
    case 'H':
        EACH(uint16_t, value);
    case 'i':
        EACH(int32_t, value);
    case 'I':
        EACH(uint32_t, value);
    case 'q':
        EACH(int64_t, (double)value);
    case 'Q':
        EACH(uint64_t, (double)value);
    }
    return row;
}

#undef EACH

#define REAL float
#define NAME(name) JOIN(name##_float, SUFFIX)
#include "one_pass_rows.h"
#define REAL double
#define NAME(name) JOIN(name##_double, SUFFIX)
#include "one_pass_rows.h"

#undef JOIN
#undef JOINED
#undef SUFFIX
#undef TOGETHER
#undef TARGET
