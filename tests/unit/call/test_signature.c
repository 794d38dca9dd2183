// Reading signatures: what is understood, in which order, and with which words the rest is refused.
#include "calls.h"

static void values_stand_as_positional_results_keyword_only(void **state)
{
    (void)state;
    hone_signature *signature = signature_of(MATMUL);
    static const char *const names[] = {"a", "b", "c", "transpose_b"};
    assert_int_equal(hone_signature_count(signature), 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(hone_signature_parameter(signature, i)->name, names[i]);
        assert_int_equal(hone_signature_find(signature, names[i]), i);
    }
    assert_true(hone_signature_parameter(signature, 2)->is_result);
    assert_true(hone_signature_parameter(signature, 3)->keyword_only);
    assert_null(hone_signature_parameter(signature, 4));
    assert_int_equal(hone_signature_find(signature, "m"), -1);
    assert_string_equal(hone_signature_parameter(signature, 1)->type_text, "T[n, k] if transpose_b else [k, n]");
    hone_signature_release(&signature);
    assert_null(signature);
}

static void text_is_normalised(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"f(x:f32[ n,m ])->y:f32[n*m]", "f(x: f32[n, m]) -> y: f32[n * m]"},
        {"f @v1 (x: f32[n]?) -> y: f32[3]", "f(x: f32[n]? = none) -> y: f32[3]"},
        {"f@v1.2-rc_3(x: f32[]) -> y: f32[]", "f@v1.2-rc_3(x: f32[]) -> y: f32[]"},
        {"f(*,k:i64=3#bucket,s:str='mean',e:f64=1)->(a:i8[k],b:i8[2])",
         "f(*, k: i64 = 3 #bucket, s: str = \"mean\", e: f64 = 1.0) -> (a: i8[k], b: i8[2])"},
        {"f(x: T[...,d~pow2], i: i32[d]~uniform( 0,d-1 )) -> inout y: T[..., d] where d>-1 and(not d==3) where T in "
         "bf16,f32",
         "f(x: T[..., d ~pow2], i: i32[d] ~ uniform(0, d - 1)) -> inout y: T[..., d] where T in bf16, f32 where d > -1 "
         "and "
         "(not d == 3)"},
        {"f(x: f32[n] if b else [n,n] if min(k,2)==1 else [], b: bool, k: i64) -> y: f32[x.ndim,x.shape[0]]",
         "f(x: f32[n] if b else [n, n] if min(k, 2) == 1 else [], b: bool, k: i64) -> y: f32[x.ndim, x.shape[0]]"},
        {"f(x: f32[n,d],*,s: f64=1/sqrt( d ),k:i64=n,t:bool = n>2*k2 #ignore,k2: i64=-1#any)->y:f32[n]",
         "f(x: f32[n, d], *, s: f64 = 1 / sqrt(d), k: i64 = n, t: bool = n > 2 * k2 #ignore, k2: i64 = -1 #any) -> y: "
         "f32[n]"},
        {"f(x: f32[n],*,b: f32[n]? #given,m: str? =none#given,t:bool=false #given)->y:f32[n]",
         "f(x: f32[n], *, b: f32[n]? = none #given, m: str? = none #given, t: bool = false #given) -> y: f32[n]"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        hone_signature *signature = signature_of(pairs[i][0]);
        assert_string_equal(hone_signature_text(signature), pairs[i][1]);
        hone_signature *again = signature_of(pairs[i][1]);
        assert_string_equal(hone_signature_text(again), pairs[i][1]);
        hone_signature_release(&signature);
        hone_signature_release(&again);
    }
}

static void names_may_hold_any_letters(void **state)
{
    (void)state;
    hone_signature *signature = signature_of("ÄLG@v7(x: f32[n]) -> y: f32[n]");
    assert_string_equal(hone_signature_name(signature), "ÄLG");
    assert_string_equal(hone_signature_version(signature), "7");
    hone_signature_release(&signature);
}

static void defaults_and_roles_are_kept(void **state)
{
    (void)state;
    hone_signature *signature = signature_of("f(x: f32[n], w: i64? = 4, *, s: f64 = -inf, seed: i64 = 0 #ignore, "
                                             "n_max: i64 #bucket, e: f64 #any) -> y: f32[n]");
    const hone_parameter *w = hone_signature_parameter(signature, 1), *s = hone_signature_parameter(signature, 3);
    assert_true(w->nullable && w->has_default);
    assert_int_equal(w->default_value.as.i64, 4);
    assert_true(s->default_value.tag == HONE_VALUE_FLOAT && s->default_value.as.f64 < -1e308);
    assert_int_equal(hone_signature_parameter(signature, 4)->role, HONE_ROLE_IGNORE);
    assert_int_equal(hone_signature_parameter(signature, 5)->role, HONE_ROLE_BUCKET);
    assert_false(hone_signature_parameter(signature, 5)->has_default);
    assert_int_equal(hone_signature_parameter(signature, 6)->role, HONE_ROLE_ANY);
    hone_signature_release(&signature);
}

static void a_default_may_be_an_expression_of_dims(void **state)
{
    (void)state;
    hone_signature *signature = signature_of("f(x: f32[n, d], *, s: f64 = 1/sqrt(d), t: f64 = 2) -> y: f32[n]");
    const hone_parameter *s = hone_signature_parameter(signature, 2), *t = hone_signature_parameter(signature, 3);
    assert_true(s->has_default && s->default_value.tag == HONE_VALUE_NONE);
    assert_string_equal(s->default_text, "1 / sqrt(d)");
    assert_true(t->has_default && t->default_text == NULL);
    hone_signature_release(&signature);
}

static void a_wrong_signature_says_where_and_what_was_expected(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"", "offset 0: expected the algorithm's name, found the end"},
        {"f", "expected '('"},
        {"f(x: f32[n])", "expected '->'"},
        {"f(x: f32[n) -> y: f32[n]", "expected ','"},
        {"f(x: f32) -> y: f32[1]", "expected '['"},
        {"f(x: f33[n]) -> y: f32[n]", "expected a dtype"},
        {"f(x: float32[n]) -> y: f32[n]", "expected a dtype"},
        {"f(x: f32[n]) -> y: f32[m]", "offset 23: 'm' is neither a scalar parameter nor a dim"},
        {"f(x: f32[n+1]) -> y: f32[2]", "'n' is neither"},
        {"f(x: f32[n]) -> y: T[n]", "no parameter has the type variable 'T'"},
        {"f(x: f32[n], x: f32[n]) -> y: f32[n]", "'x' is there twice"},
        {"f(x: f32[n]) -> x: f32[n]", "'x' is there twice"},
        {"f(x: f32[n, ...]) -> y: f32[n]", "'...' may stand only once, at the front"},
        {"f(x: f32[n+1 ~pow2]) -> y: f32[2]", "goes only on a bare dim name"},
        {"f(x: f32[k ~pow2], k: i64) -> y: f32[2]", "'~pow2' goes only on a dim"},
        {"f(x: f32[n], k: i64 = 1.5) -> y: f32[n]", "the default of k does not fit its type"},
        {"f(x: f32[n], k: f64 = 1/sqrt(m)) -> y: f32[n]", "'m' is neither a scalar parameter nor a dim"},
        {"f(x: f32[n], k: f64 = 1/) -> y: f32[n]", "expected a value, found ')'"},
        {"f(x: f32[n], k: f64 = 1 2) -> y: f32[n]", "expected ',', found '2'"},
        {"f(x: f32[n], k: i64 = n, y: f32[k]) -> z: f32[n]", "a shape depends on k, so its default is a literal: 'n'"},
        {"f(x: f32[n], k: i64 = n, j: i64 = k + 1) -> z: f32[n]",
         "the default of j, 'k + 1', reads a scalar whose default is an expression, too"},
        {"f(x: f32[n], k: i64 = 'n') -> y: f32[n]", "the default of k does not fit its type"},
        {"f(x: f32[n], k: i64 = none) -> y: f32[n]", "write '?' behind the type to allow none"},
        {"f(x: f32[n] = 3) -> y: f32[n]", "the default of x does not fit"},
        {"f(x: f32[n] #bucket) -> y: f32[n]", "of the roles in the call key it can only have '#given'"},
        {"f(x: f32[n], k: i64 #ignore) -> y: f32[n]", "needs a default"},
        {"f(x: f32[n], k: bool = true #any) -> y: f32[n]", "k is not a number: '#any' goes after an f64 or i64"},
        {"f(x: f32[n], k: str #any) -> y: f32[n]", "k is not a number"},
        {"f(x: f32[k], k: i64 #any) -> y: f32[k]", "a shape depends on k, so that it cannot be marked '#any'"},
        {"f(x: f32[n] #given) -> y: f32[n]", "x is left out of the call key, so it needs a default"},
        {"f(x: f32[n], k: i64 #given) -> y: f32[n]", "k is left out of the call key, so it needs a default"},
        {"f(x: f32[n], k: i64 = n #given) -> y: f32[n]", "k has '#given', so its default must be a literal"},
        {"f(x: f32[n], k: i64 #weight) -> y: f32[n]", "expected a role"},
        {"f(x: f32[n] ~ gauss(0, 1)) -> y: f32[n]", "expected a generator: uniform"},
        {"f(x: f32[n] ~ uniform(0)) -> y: f32[n]", "another argument of the generator"},
        {"f(x: f32[n] ~ uniform(0, 1, 2)) -> y: f32[n]", "one argument too many"},
        {"f(x: f32[n], *, *) -> y: f32[n]", "'*' may stand only once"},
        {"f(x: f32[n],) -> y: f32[n]", "the name of a parameter"},
        {"f@2(x: f32[n]) -> y: f32[n]", "expected a version"},
        {"f(x: f32[n]) -> y: f32[n] where U in f32", "expected a type variable"},
        {"f(x: T[n]) -> y: T[n] where T in f32, real", "expected a dtype"},
        {"f(x: f32[n]) -> y: f32[n] and more", "expected 'where' or the end"},
        {"f(x: f32[n]) -> y: f32[z.shape[0]]", "'z' is not a tensor parameter"},
        {"f(x: f32[a,b,c,d,e,f,g,h,i]) -> y: f32[a]", "at most 8 dims"},
        {"f(x: f32[n], s: str = 'a) -> y: f32[n]", "closing quote"},
        {"f(x\xff: f32[n]) -> y: f32[n]", "a signature is UTF-8"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hone_signature *signature = NULL;
        hone_error err = {0};
        assert_int_equal(
            hone_signature_parse(hone_allocator_system(), wrong[i][0], &signature, &err), HONE_INVALID_ARGUMENT);
        assert_null(signature);
        assert_contains(err.message, wrong[i][1]);
    }
    hone_signature *signature = NULL;
    assert_int_equal(hone_signature_parse(hone_allocator_system(), NULL, &signature, NULL), HONE_INVALID_ARGUMENT);
}

static void too_many_of_anything_is_refused(void **state)
{
    (void)state;
    char text[8192] = "f(";
    for (int i = 0; i < 70; i++)
        snprintf(text + strlen(text), 32, "%sx%d: f32[n]", i > 0 ? ", " : "", i);
    strcat(text, ") -> y: f32[n]");
    hone_signature *signature = NULL;
    hone_error err = {0};
    assert_int_equal(hone_signature_parse(hone_allocator_system(), text, &signature, &err), HONE_INVALID_ARGUMENT);
    assert_contains(err.message, "more than 64 parameters");
}

// Writes a signature with so many of a piece, numbered, and reads it.
static hone_status parse_many(const char *before, const char *piece, const char *between, int count, const char *behind)
{
    static char text[16384];
    size_t used = (size_t)snprintf(text, sizeof text, "%s", before);
    for (int i = 0; i < count; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", i > 0 ? between : "");
        for (const char *c = piece; *c != '\0'; c++)
            used +=
                (size_t)snprintf(text + used, sizeof text - used, *c == '#' ? "%s" : "%.1s", *c == '#' ? number : c);
    }
    snprintf(text + used, sizeof text - used, "%s", behind);
    hone_signature *signature = NULL;
    hone_error err = {0};
    const hone_status status = hone_signature_parse(hone_allocator_system(), text, &signature, &err);
    if (status == HONE_OK) {
        hone_signature *again = signature_of(hone_signature_text(signature));
        assert_string_equal(hone_signature_text(again), hone_signature_text(signature));
        hone_signature_release(&again);
    }
    hone_signature_release(&signature);
    return status;
}

static void there_may_be_as_many_of_anything_as_is_said_and_no_more(void **state)
{
    (void)state;
    static const struct {
        const char *before, *piece, *between, *behind;
        int most;
    } known[] = {
        {"f(", "x#: f32[n]", ", ", ") -> y: f32[n]", 63}, // and the result
        {"f(x: f32[n]) -> y: f32[n]", " where n > #", "", "", 32},
        {"f(x: f32[", "n", ", ", "]) -> y: f32[n]", 8},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (int more = 0; more < 3; more++)
            assert_int_equal(
                parse_many(known[i].before, known[i].piece, known[i].between, known[i].most + more, known[i].behind),
                more == 0 ? HONE_OK : HONE_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_stand_as_positional_results_keyword_only),
        cmocka_unit_test(text_is_normalised),
        cmocka_unit_test(names_may_hold_any_letters),
        cmocka_unit_test(defaults_and_roles_are_kept),
        cmocka_unit_test(a_default_may_be_an_expression_of_dims),
        cmocka_unit_test(a_wrong_signature_says_where_and_what_was_expected),
        cmocka_unit_test(too_many_of_anything_is_refused),
        cmocka_unit_test(there_may_be_as_many_of_anything_as_is_said_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
