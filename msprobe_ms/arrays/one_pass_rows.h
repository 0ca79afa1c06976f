/* The pass over rows of numbers of one type, for one set of instructions: one_pass.c includes it once for each pair.
 *
 * REAL    float or double
 * NAME(x) the name of x for this pair
 * TARGET  the attribute that asks for the instructions
 *
 * Loops over lanes are what compilers turn into vectors. There are as many lanes on every processor, so that sums are
 * added in one order. Products of floats with signs, and squares of floats in double, are exact: whether an instruction
 * rounds between product and sum changes no bit of float32 and of what is narrower. */

typedef struct {
    REAL maximum[LANES], minimum[LANES];
    double total[LANES], squares[LANES];
} NAME(Lanes);

/* What every element is asked for; a NaN is neither larger nor smaller than any. */
#define LOOK_AT(lane, value)                                                                        \
    do {                                                                                            \
        const double wide = (double)(value);                                                        \
        lanes.maximum[lane] = (value) > lanes.maximum[lane] ? (value) : lanes.maximum[lane];        \
        lanes.minimum[lane] = (value) < lanes.minimum[lane] ? (value) : lanes.minimum[lane];        \
        lanes.total[lane] += wide;                                                                  \
        lanes.squares[lane] += wide * wide;                                                         \
    } while (0)

TARGET static void NAME(look_at)(const REAL *restrict row, size_t count, NAME(Lanes) *restrict kept)
{
    NAME(Lanes) lanes = *kept;
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        __builtin_prefetch((const char *)(row + i) + AHEAD);
        KEEP_LOOP
        for (int lane = 0; lane < LANES; lane++) {
            const REAL value = row[i + lane];
            LOOK_AT(lane, value);
        }
    }
    for (size_t lane = 0; i + lane < count; lane++) {
        const REAL value = row[i + lane];
        LOOK_AT(lane, value);
    }
    *kept = lanes;
}

/* The same of a whole row, which is multiplied by three sign vectors on the way; of each product the sums of lanes. */
TARGET static void NAME(project)(const REAL *restrict row, const float *restrict signs,
                                 NAME(Lanes) *restrict kept, REAL (*restrict products)[LANES])
{
    NAME(Lanes) lanes = *kept;
    REAL sums[VECTORS][LANES] = {{0}};
    for (size_t i = 0; i < ROW; i += LANES) {
        __builtin_prefetch((const char *)(row + i) + AHEAD);
        KEEP_LOOP
        for (int lane = 0; lane < LANES; lane++) {
            const REAL value = row[i + lane];
            LOOK_AT(lane, value);
            sums[0][lane] += value * (REAL)signs[i + lane];
            sums[1][lane] += value * (REAL)signs[ROW + i + lane];
            sums[2][lane] += value * (REAL)signs[2 * ROW + i + lane];
        }
    }
    memcpy(products, sums, sizeof sums);
    *kept = lanes;
}

/* The products of all rows that were taken together: lanes are added one after the other, products side by side. */
TARGET static void NAME(add_lanes)(REAL (*restrict sums)[LANES], double *restrict products)
{
    double totals[TOGETHER * VECTORS] = {0};
    for (int lane = 0; lane < LANES; lane++)
        for (int product = 0; product < TOGETHER * VECTORS; product++)
            totals[product] += (double)sums[product][lane];
    memcpy(products, totals, sizeof totals);
}

/* Multiplies what is left at the end, up to a row, by sixteen sign vectors. */
TARGET static void NAME(project_rest)(const REAL *restrict row, size_t count, const float *restrict signs,
                                      double *restrict products)
{
    REAL sums[4][LENGTH] = {{0}};
    size_t i = 0;
    for (; i + 4 <= count; i += 4, signs += 4 * LENGTH) {
        const REAL first = row[i], second = row[i + 1], third = row[i + 2], fourth = row[i + 3];
        KEEP_LOOP
        for (int number = 0; number < LENGTH; number++) {
            sums[0][number] += first * (REAL)signs[number];
            sums[1][number] += second * (REAL)signs[LENGTH + number];
            sums[2][number] += third * (REAL)signs[2 * LENGTH + number];
            sums[3][number] += fourth * (REAL)signs[3 * LENGTH + number];
        }
    }
    for (; i < count; i++, signs += LENGTH)
        for (int number = 0; number < LENGTH; number++)
            sums[i % 4][number] += row[i] * (REAL)signs[number];
    for (int number = 0; number < LENGTH; number++)
        products[number] = (double)sums[0][number] + (double)sums[1][number] + (double)sums[2][number] +
                           (double)sums[3][number];
}

TARGET static void NAME(pass)(Elements *elements, const Tables *tables, Figures *figures)
{
    NAME(Lanes) lanes;
    for (int lane = 0; lane < LANES; lane++) {
        lanes.maximum[lane] = -(REAL)INFINITY;
        lanes.minimum[lane] = (REAL)INFINITY;
        lanes.total[lane] = lanes.squares[lane] = 0;
    }
    const size_t count = elements->count, grouped = count - count % GROUP;
    const int few = tables != NULL && elements->first == 0 && count <= LENGTH;
    Block block = {elements->first / BLOCK, {0}};
    double grouped_sketch[LENGTH] = {0}, rest_sketch[LENGTH] = {0};
    REAL room[ROW], sums[TOGETHER][VECTORS][LANES];
    for (size_t done = 0; done < count; done += ROW) {
        const size_t size = count - done < ROW ? count - done : ROW;
        const REAL *row = NAME(next)(elements, size, room);
        double products[LENGTH];
        if (tables != NULL && done < grouped) {
            const size_t place = done % BLOCK / ROW;
            NAME(project)(row, tables->vectors[place % SETS][0], &lanes, sums[place % TOGETHER]);
            if ((place + 1) % TOGETHER == 0) {
                double several[TOGETHER][VECTORS];
                NAME(add_lanes)(sums[0], several[0]);
                for (size_t i = 0; i < TOGETHER; i++)
                    add_products(&block, tables, place + 1 - TOGETHER + i, several[i]);
            }
            if (place == BLOCK / ROW - 1 || done + ROW == grouped)
                finish_block(&block, grouped_sketch);
            continue;
        }
        NAME(look_at)(row, size, &lanes);
        if (few) {
            for (size_t i = 0; i < size; i++)
                figures->sketch[i] = (double)row[i];
        } else if (tables != NULL) {
            NAME(project_rest)(row, size, tables->rest_vectors[0], products);
            add_rest(rest_sketch, tables, (done - grouped) / ROW, products);
        }
    }
    if (tables != NULL && !few)
        join_parts(grouped_sketch, tables->row_length, rest_sketch, figures->sketch);
    figures->maximum = -INFINITY;
    figures->minimum = INFINITY;
    figures->total = figures->squares = 0;
    for (int lane = 0; lane < LANES; lane++) {
        figures->maximum = lanes.maximum[lane] > figures->maximum ? (double)lanes.maximum[lane] : figures->maximum;
        figures->minimum = lanes.minimum[lane] < figures->minimum ? (double)lanes.minimum[lane] : figures->minimum;
        figures->total += lanes.total[lane];
        figures->squares += lanes.squares[lane];
    }
}

#undef LOOK_AT
#undef REAL
#undef NAME
