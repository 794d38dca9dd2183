// What is no lock file, or no longer the one that was written: refused with the line, what came and what was expected.
#include "locks.h"

#define GOOD "norm@v1 " KEY_A " cpu native/fast unroll=4  # norm(f32[4])\n"

static void assert_refused(const char *text, unsigned flags, hone_status expected, const char *const *words)
{
    hone_lock *lock = (hone_lock *)1;
    hone_error err = {.message = ""};
    hone_status status = parse_text(text, flags, &lock, &err);
    if (status != expected) fail_msg("%d for:\n%s\n%s", (int)status, text, err.message);
    assert_null(lock);
    assert_int_equal(err.status, expected);
    assert_int_equal(parse_text(text, flags, &lock, NULL), expected);
    for (; *words != NULL; words++)
        if (strstr(err.message, *words) == NULL) fail_msg("'%s' not in: %s", *words, err.message);
}

static void an_invalid_line_is_named_with_the_expected_form(void **state)
{
    static const struct {
        const char *body;
        const char *words[5];
    } rows[] = {
        {"norm\n", {"hone.lock:2:", "'norm'", "ALGORITHM@vVERSION"}},
        {"@v1 " KEY_A " cpu native/fast\n", {":2:", "'@v1'", "ALGORITHM@vVERSION"}},
        {"norm@v " KEY_A " cpu native/fast\n", {":2:", "the version is missing"}},
        {GOOD "norm@v1\n", {":3:", "the fourth field"}},
        {"norm@v1 " KEY_A " cpu\n", {":2:", "the fourth field is ''", "PLATFORM/KERNEL"}},
        {"norm@v1 " KEY_A " cpu fast\n", {":2:", "'fast'", "PLATFORM/KERNEL"}},
        {"norm@v1 " KEY_A " cpu /fast\n", {":2:", "'/fast'", "PLATFORM/KERNEL"}},
        {"norm@v1 " KEY_A " cpu native/\n", {":2:", "the kernel is missing"}},
        {"norm@v1 0123 cpu native/fast\n", {":2:", "'0123'", "16 lower-case hex digits"}},
        {"norm@v1 0123456789ABCDEF cpu native/fast\n", {":2:", "16 lower-case hex digits"}},
        {"norm@v1 " KEY_A "0 cpu native/fast\n", {":2:", "16 lower-case hex digits"}},
        {"norm@v1 " KEY_A " cp%zz native/fast\n", {":2:", "the device", "'cp%25zz'", "escape"}},
        {"norm@v1 " KEY_A " cpu% native/fast\n", {":2:", "the device", "escape"}},
        {"norm@v1 " KEY_A " c%00 native/fast\n", {":2:", "the device", "escape"}},
        {"norm@v1 " KEY_A " c%c3 native/fast\n", {":2:", "the device", "escape"}},
        {"norm@v1 " KEY_A " cpu native/fast unroll\n", {":2:", "'unroll'", "PARAMETER=VALUE"}},
        {"norm@v1 " KEY_A " cpu native/fast =4\n", {":2:", "'=4'", "PARAMETER=VALUE"}},
        {"norm@v1 " KEY_A " cpu native/fast unroll=\n", {":2:", "'unroll'", "''", "a number"}},
        {"norm@v1 " KEY_A " cpu native/fast unroll=4 unroll=2\n", {":2:", "'unroll'", "twice"}},
        {"norm@v1 " KEY_A " cpu native/fast unroll=[1]\n", {":2:", "'[1]'", "a number"}},
        {"norm@v1 " KEY_A " cpu native/fast unroll=null\n", {":2:", "'null'", "a number"}},
        {"norm@v1 " KEY_A " cpu native/fast unroll=\"4\n", {":2:", "a number"}},
        {"norm@v1 " KEY_A " cpu native/fast unroll=\"4\"x\n", {":2:", "a number"}},
        {"norm@v1 " KEY_A " cpu native/fast unroll=4;\n", {":2:", "'4;'", "a number"}},
        {"norm@v1 " KEY_A " cpu native/fast %FF=4\n", {":2:", "not UTF-8"}},
        {GOOD "\n# a word\n" GOOD, {":5:", "second choice", "line 2", KEY_A}},
        {GOOD "norm@v1 " KEY_A " cpu native/fast\r\n", {":3:", "0x0d", ".gitattributes"}},
        {"norm@v1\t" KEY_A " cpu native/fast\n", {":2:", "0x09", "column 8"}},
        {GOOD "<<<<<<< HEAD\n", {":3:", "<<<<<<<", "--reseal"}},
        {GOOD "=======\n", {":3:", "conflict"}},
        {GOOD ">>>>>>> branch\n", {":3:", "conflict"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = sealed(rows[i].body);
        assert_refused(text, 0, HONE_CORRUPT, rows[i].words);
        assert_refused(text, HONE_LOCK_UNSEALED, HONE_CORRUPT, rows[i].words);
        free(text);
    }
}

static void names_that_no_decision_can_hold_are_refused(void **state)
{
    char body[2000], name[101], *text;
    (void)state;
    memset(name, 'x', 100);
    name[100] = '\0';
    static const struct {
        const char *format, *says;
    } rows[] = {
        {"%s@v1 " KEY_A " cpu native/fast\n", "the algorithm"},
        {"norm@v%s " KEY_A " cpu native/fast\n", "the version"},
        {"norm@v1 " KEY_A " cpu %s/fast\n", "the platform"},
        {"norm@v1 " KEY_A " cpu native/%s\n", "the kernel"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(body, sizeof body, rows[i].format, name);
        text = sealed(body);
        assert_refused(text, 0, HONE_CORRUPT, (const char *[]){"hone.lock:2:", rows[i].says, "at most", NULL});
        free(text);
    }
    strcpy(body, "norm@v1 " KEY_A " cpu native/fast");
    for (int i = 0; i <= HONE_MAX_PARAMETERS; i++)
        sprintf(body + strlen(body), " p%d=1", i);
    strcat(body, "\n");
    text = sealed(body);
    assert_refused(text, 0, HONE_CORRUPT, (const char *[]){"hone.lock:2:", "more than 32 parameters", NULL});
    free(text);
}

static void a_file_with_another_header_is_refused(void **state)
{
    static const char *const starts[] = {
        "{}",
        "hone.lock",
        "hone.lock 1\n",
        "hone.lock 2\n",
        "hone.lock 1 sha256:\n",
        "hone.lock 1 sha256:12\n",
        "hone.lock  1 sha256:",
        "hone.lock x sha256:",
        "\n",
        "hone.lock 1 md5:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n",
        "hone.lock 1 sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0\n"};
    (void)state;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        assert_refused(
            starts[i], HONE_LOCK_UNSEALED, HONE_CORRUPT,
            (const char *[]){"hone.lock:1:", "hone.lock 2 sha256:", "is this a lock file?", NULL});
    assert_refused("", 0, HONE_CORRUPT, (const char *[]){"hone.lock is empty", NULL});
}

static void a_newer_format_is_distinguished_from_damage(void **state)
{
    (void)state;
    static const char *const versions[] = {"hone.lock 3 sha256:", "hone.lock 11 sha256:", "hone.lock 0 x"};
    for (size_t i = 0; i < 3; i++)
        assert_refused(
            versions[i], HONE_LOCK_UNSEALED, HONE_INCOMPATIBLE,
            (const char *[]){"hone.lock:1:", "format", "newer", NULL});
}

static void a_manual_edit_is_reported_with_how_to_accept_it(void **state)
{
    (void)state;
    char *text = sealed(GOOD);
    strstr(text, "unroll=4")[7] = '2';
    assert_refused(text, 0, HONE_CORRUPT, (const char *[]){"hone.lock", "hash", "edited", "--reseal", NULL});
    hone_lock *lock = NULL;
    hone_error err;
    assert_int_equal(parse_text(text, HONE_LOCK_UNSEALED, &lock, &err), HONE_OK);
    assert_string_equal(hone_lock_at(lock, 0)->config_text, "unroll=2");
    char *again = text_of(lock);
    hone_lock_release(&lock);
    lock = parsed(again);
    assert_string_equal(hone_lock_at(lock, 0)->config_text, "unroll=2");
    hone_lock_release(&lock);
    free(again);
    free(text);
}

static void a_lock_that_is_put_wrongly_says_which_field(void **state)
{
    (void)state;
    hone_error err;
    hone_lock *lock = new_lock();
    struct {
        hone_lock_line line;
        const char *says;
    } rows[12];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        rows[i].line = line_of(KEY_A, "cpu", "fast", "{}");
    rows[0].line.algorithm = NULL, rows[0].says = "algorithm";
    rows[1].line.version = "", rows[1].says = "version";
    rows[2].line.key = "12", rows[2].says = "16 lower-case hex digits";
    rows[3].line.device = "", rows[3].says = "device";
    rows[4].line.platform = "a/b", rows[4].says = "platform";
    rows[5].line.kernel = NULL, rows[5].says = "kernel";
    rows[6].line.config = "unroll=4", rows[6].says = "JSON object";
    rows[7].line.config = "{\"a\":null}", rows[7].says = "config's a is not a number";
    rows[8].line.config = "[1]", rows[8].says = "JSON object";
    rows[9].line.algorithm = "MatMul", rows[9].says = "lower case, 'matmul'";
    rows[11].line.revision = "", rows[11].says = "revision";
    rows[10].line.algorithm = "\xc3\x84hnlich", rows[10].says = "lower case, '\xc3\xa4hnlich'";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(hone_lock_put(lock, &rows[i].line, &err), HONE_INVALID_ARGUMENT);
        if (strstr(err.message, rows[i].says) == NULL) fail_msg("'%s' not in: %s", rows[i].says, err.message);
    }
    assert_int_equal(hone_lock_size(lock), 0);
    hone_lock_release(&lock);
}

// Whatever bit of a file turns, and wherever it is cut, it is not served.
static void no_damage_passes(void **state)
{
    (void)state;
    hone_lock *lock = new_lock();
    put_line(lock, line_of(KEY_A, "cpu a", "fast", "{\"unroll\":4,\"layout\":\"col major\"}"));
    put_line(lock, line_of(KEY_B, "cpu a", "slow", NULL));
    char *text = text_of(lock);
    size_t size = strlen(text);
    hone_lock *read = NULL;
    for (size_t i = 0; i < size; i++) {
        for (int bit = 0; bit < 8; bit++) {
            text[i] = (char)(text[i] ^ 1 << bit);
            hone_status status = hone_lock_parse(hone_allocator_system(), "hone.lock", text, size, 0, &read, NULL);
            assert_true(status == HONE_CORRUPT || status == HONE_INCOMPATIBLE);
            (void)!hone_lock_parse(hone_allocator_system(), "hone.lock", text, size, HONE_LOCK_UNSEALED, &read, NULL);
            hone_lock_release(&read);
            text[i] = (char)(text[i] ^ 1 << bit);
        }
        assert_int_equal(hone_lock_parse(hone_allocator_system(), "hone.lock", text, i, 0, &read, NULL), HONE_CORRUPT);
    }
    free(text);
    hone_lock_release(&lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_invalid_line_is_named_with_the_expected_form),
        cmocka_unit_test(names_that_no_decision_can_hold_are_refused),
        cmocka_unit_test(a_file_with_another_header_is_refused),
        cmocka_unit_test(a_newer_format_is_distinguished_from_damage),
        cmocka_unit_test(a_manual_edit_is_reported_with_how_to_accept_it),
        cmocka_unit_test(a_lock_that_is_put_wrongly_says_which_field),
        cmocka_unit_test(no_damage_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
