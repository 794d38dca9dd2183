// Parameters as numbers that a model can learn from, each between 0 and 1: docs/search.md says which and why. Of a
// column they are worked out once a value, of a row by looking them up. Invariant: features [0, columns) are the
// columns' own, up to `single` those of one column, behind that products of two.
#include "search/features.h"

#include "base/error.h"
#include "space/bound.h"

#include <math.h>
#include <string.h>

static const char where[] = "search.features";

enum { MOST_TWOS = 6 };

// Numbers whose largest is many times their smallest are sizes: what matters is by which factor they differ.
static const double geometric_from = 7;

static double number_of(const hone_space_value *value)
{
    return value->scalar.kind == HONE_SCALAR_FLOAT ? value->scalar.as.f64 : (double)value->scalar.as.i64;
}

static bool is_numeric(const hone_space_parameter *parameter)
{
    for (size_t i = 0; i < parameter->count; i++) {
        hone_scalar_kind kind = parameter->values[i].scalar.kind;
        if (kind != HONE_SCALAR_INT && kind != HONE_SCALAR_FLOAT && kind != HONE_SCALAR_BOOL) return false;
        if (!isfinite(number_of(&parameter->values[i]))) return false;
    }
    return true;
}

// Log2 of sizes, numbers as they are, else the position.
static void fill_column(const hone_space_parameter *parameter, float *out)
{
    double least = INFINITY, most = -INFINITY;
    bool numeric = is_numeric(parameter), geometric = numeric;
    for (size_t i = 0; i < parameter->count; i++) {
        double number = numeric ? number_of(&parameter->values[i]) : (double)i;
        least = fmin(least, number);
        most = fmax(most, number);
    }
    geometric = geometric && least > 0 && most > geometric_from * least;
    double low = geometric ? log2(least) : least, high = geometric ? log2(most) : most;
    for (size_t i = 0; i < parameter->count; i++) {
        double number = numeric ? number_of(&parameter->values[i]) : (double)i;
        out[i] = (float)(((geometric ? log2(number) : number) - low) / (high - low));
    }
}

static bool is_power_of_two(int64_t value)
{
    return value > 0 && (value & (value - 1)) == 0;
}

static void fill_twos(const hone_space_parameter *parameter, float *out)
{
    for (size_t i = 0; i < parameter->count; i++) {
        int64_t value = parameter->values[i].scalar.as.i64;
        int twos = value == 0 ? MOST_TWOS : __builtin_ctzll((uint64_t)value);
        out[i] = (float)(twos < MOST_TWOS ? twos : MOST_TWOS) / MOST_TWOS;
    }
}

static void fill_powers(const hone_space_parameter *parameter, float *out)
{
    for (size_t i = 0; i < parameter->count; i++)
        out[i] = is_power_of_two(parameter->values[i].scalar.as.i64) ? 1 : 0;
}

// Of other columns the two would say nothing that the number does not.
static bool has_twos(const hone_space_parameter *parameter)
{
    size_t powers = 0;
    for (size_t i = 0; i < parameter->count && parameter->integers; i++)
        powers += is_power_of_two(parameter->values[i].scalar.as.i64);
    return parameter->integers && parameter->count > 3 && powers > 1 && powers < parameter->count;
}

// Words, or 0, 1, 2, ...: three at least, since of two either says all.
static bool is_code(const hone_space_parameter *parameter)
{
    bool numeric = is_numeric(parameter);
    if (parameter->count < 3 || parameter->count > HONE_FEATURES_CODES) return false;
    for (size_t i = 0; i < parameter->count && numeric; i++)
        if (number_of(&parameter->values[i]) != (double)i) return false;
    return true;
}

static bool add(
    hone_features *features,
    const hone_space_parameter *parameter,
    size_t column,
    void (*fill)(const hone_space_parameter *parameter, float *out))
{
    float *numbers = hone_alloc_array(&features->allocator, parameter->count, sizeof *numbers);
    if (numbers == NULL) return false;
    fill(parameter, numbers);
    features->of_column[features->count] = (uint8_t)column;
    features->of_position[features->count++] = numbers;
    return true;
}

static void fill_nothing(const hone_space_parameter *parameter, float *out)
{
    (void)parameter;
    (void)out;
}

static bool add_codes(hone_features *features, const hone_space_parameter *parameter, size_t column)
{
    if (!is_code(parameter)) return true;
    for (size_t i = 0; i < parameter->count && features->count < HONE_FEATURES_MOST; i++) {
        if (!add(features, parameter, column, fill_nothing)) return false;
        features->of_position[features->count - 1][i] = 1;
    }
    return true;
}

// Pairs of sizes ------------------------------------------------------------------------------------------------------

static bool is_size(const hone_space_parameter *parameter)
{
    bool is = parameter->count > 2 && is_numeric(parameter);
    for (size_t i = 0; i < parameter->count && is; i++)
        is = number_of(&parameter->values[i]) > 0;
    return is;
}

static bool differ_in_one_letter(const char *a, const char *b)
{
    size_t length = strlen(a), differences = 0;
    for (size_t i = 0; i < length && strlen(b) == length; i++)
        differences += a[i] != b[i];
    return differences == 1;
}

static double log_range(const hone_space_parameter *parameter, double *out_low)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < parameter->count; i++) {
        low = fmin(low, log2(number_of(&parameter->values[i])));
        high = fmax(high, log2(number_of(&parameter->values[i])));
    }
    *out_low = low;
    return high - low;
}

// What the values of one of two columns add to the logarithm of the product, of `range` for both.
static float *part_of_product(const hone_features *features, const hone_space_parameter *parameter, double range)
{
    double low;
    float *part = hone_alloc_array(&features->allocator, parameter->count, sizeof *part);
    if (part == NULL) return NULL;
    log_range(parameter, &low);
    for (size_t i = 0; i < parameter->count; i++)
        part[i] = (float)((log2(number_of(&parameter->values[i])) - low) / range);
    return part;
}

static bool add_product(hone_features *features, const hone_config_table *table, size_t column, size_t other)
{
    const hone_space_parameter *parameters = table->bound->space->parameters;
    const hone_space_parameter *a = &parameters[table->parameters[column]], *b = &parameters[table->parameters[other]];
    double low, range = log_range(a, &low) + log_range(b, &low);
    size_t i = features->count++;
    features->of_column[i] = (uint8_t)column;
    features->of_other[i] = (uint8_t)other;
    features->of_position[i] = part_of_product(features, a, range);
    features->of_other_position[i] = part_of_product(features, b, range);
    return features->of_position[i] != NULL && features->of_other_position[i] != NULL;
}

static bool add_products(hone_features *features, const hone_config_table *table)
{
    bool made = true;
    const hone_space_parameter *parameters = table->bound->space->parameters;
    size_t most = features->count + HONE_FEATURES_PAIRS;
    if (most > HONE_FEATURES_MOST) most = HONE_FEATURES_MOST;
    for (size_t i = 0; i < table->columns; i++)
        for (size_t j = i + 1; j < table->columns && made && features->count < most; j++) {
            const hone_space_parameter *a = &parameters[table->parameters[i]], *b = &parameters[table->parameters[j]];
            if (differ_in_one_letter(a->name, b->name) && is_size(a) && is_size(b))
                made = add_product(features, table, i, j);
        }
    return made;
}

// All of them ---------------------------------------------------------------------------------------------------------

static bool add_all(hone_features *features, const hone_config_table *table)
{
    const hone_space_parameter *parameters = table->bound->space->parameters;
    bool made = true;
    for (size_t i = 0; i < table->columns && made; i++) {
        const hone_space_parameter *parameter = &parameters[table->parameters[i]];
        features->is_ordered[i] = parameter->count > 2 && is_numeric(parameter) && !is_code(parameter);
        made = add(features, parameter, i, fill_column);
    }
    for (size_t i = 0; i < table->columns && made; i++) {
        const hone_space_parameter *parameter = &parameters[table->parameters[i]];
        if (has_twos(parameter))
            made = add(features, parameter, i, fill_twos) && add(features, parameter, i, fill_powers);
    }
    for (size_t i = 0; i < table->columns && made; i++)
        made = add_codes(features, &parameters[table->parameters[i]], i);
    features->single = features->count;
    return made && add_products(features, table);
}

hone_status hone_features_init(
    hone_features *features, const hone_allocator *allocator, const hone_config_table *table, hone_error *err)
{
    *features = (hone_features){.allocator = *allocator, .columns = table->columns};
    if (!add_all(features, table)) return hone_fail_memory(err, where);
    return hone_features_update(features, table, err);
}

void hone_features_deinit(hone_features *features)
{
    for (size_t i = 0; i < features->count; i++) {
        hone_free(&features->allocator, features->of_position[i]);
        hone_free(&features->allocator, features->of_other_position[i]);
        hone_free(&features->allocator, features->values[i]);
    }
    *features = (hone_features){0};
}

static float value_of(const hone_features *features, size_t feature, const uint16_t *positions)
{
    float value = features->of_position[feature][positions[features->of_column[feature]]];
    const float *others = features->of_other_position[feature];
    return others == NULL ? value : value + others[positions[features->of_other[feature]]];
}

hone_status hone_features_update(hone_features *features, const hone_config_table *table, hone_error *err)
{
    for (size_t i = 0; i < features->count && table->count > features->capacity; i++) {
        float *values = hone_resize(&features->allocator, features->values[i], table->capacity * sizeof *values);
        if (values == NULL) return hone_fail_memory(err, where);
        features->values[i] = values;
    }
    if (table->count > features->capacity) features->capacity = table->capacity;
    for (; features->rows < table->count; features->rows++) {
        const uint16_t *positions = hone_config_table_row(table, (uint32_t)features->rows);
        for (size_t i = 0; i < features->count; i++)
            features->values[i][features->rows] = value_of(features, i, positions);
    }
    return HONE_OK;
}
