// What a store in JSON files does with files: shared, damaged, somebody else's, full, and left by a crash.
#include "hone/store.h"

#include "records.h"
#include "store/records.h"
#include "temporary_folder.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEXT_LIMIT = 1 << 20 };

typedef struct fixture {
    temporary_folder folder;
    char file[TEMPORARY_PATH_SIZE]; // the folder's file of rms_norm
    char url[TEMPORARY_PATH_SIZE + 16], file_url[TEMPORARY_PATH_SIZE + 16];
    char text[TEXT_LIMIT];
    hone_error err;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    if (f == NULL || temporary_folder_make(&f->folder) != 0) return -1;
    snprintf(f->file, sizeof f->file, "%s/rms_norm.json", f->folder.path);
    snprintf(f->url, sizeof f->url, "json:%s", f->folder.path);
    snprintf(f->file_url, sizeof f->file_url, "json:%s", f->file);
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    temporary_folder_remove(&f->folder);
    free(f);
    return 0;
}

static hone_store *open_store(fixture *f, const char *url)
{
    hone_store *store = NULL;
    if (hone_store_open(hone_allocator_system(), url, &store, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    return store;
}

static void put_one(fixture *f, hone_store *store, const char *algorithm, const char *key)
{
    hone_store_decision put = sample_decision();
    put.key.algorithm = algorithm;
    put.key.key = key;
    if (hone_store_put(store, &put, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
}

// Three decisions of rms_norm.
static void make_store(fixture *f)
{
    hone_store *store = open_store(f, f->url);
    put_one(f, store, "rms_norm", "0123456789abcdef");
    put_one(f, store, "rms_norm", "1111111111111111");
    put_one(f, store, "rms_norm", "2222222222222222");
    hone_store_close(&store);
}

static size_t read_text(fixture *f, const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(f->text, 1, sizeof f->text - 1, file);
    fclose(file);
    f->text[size] = '\0';
    return size;
}

static void write_text(const char *path, const char *text, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static bool count_decision(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    const hone_store_decision sample = sample_decision();
    assert_string_equal(decision->kernel, sample.kernel); // whatever is served is what was put
    assert_string_equal(decision->config, sample.config);
    assert_true(decision->time_ns == sample.time_ns);
    ++*(size_t *)ctx;
    return true;
}

static size_t count_decisions(hone_store *store)
{
    size_t count = 0;
    assert_int_equal(hone_store_scan(store, HONE_RECORD_DECISION, NULL, count_decision, &count, NULL), HONE_OK);
    return count;
}

static size_t count_at(fixture *f, const char *url)
{
    hone_store *store = open_store(f, url);
    size_t count = count_decisions(store);
    hone_store_close(&store);
    return count;
}

// Names in the folder that contain a word.
static size_t count_names(const fixture *f, const char *word)
{
    DIR *folder = opendir(f->folder.path);
    assert_non_null(folder);
    size_t count = 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += strstr(entry->d_name, word) != NULL;
    closedir(folder);
    return count;
}

// Files ---------------------------------------------------------------------------------------------------------------

static void each_algorithm_has_a_file_and_what_has_none_another(void **state)
{
    fixture *f = *state;
    hone_store *store = open_store(f, f->url);
    put_one(f, store, "rms_norm", "0123456789abcdef");
    put_one(f, store, "../softmax", "0123456789abcdef");
    const hone_store_alias alias = sample_alias();
    assert_int_equal(hone_store_put_alias(store, &alias, &f->err), HONE_OK);
    hone_store_close(&store);
    assert_int_equal(count_names(f, "rms_norm.json"), 1);
    assert_int_equal(count_names(f, "%2E.%2Fsoftmax.json"), 1);
    assert_int_equal(count_names(f, "@store.json"), 1);
    assert_int_equal(count_names(f, ".json"), 3);
    assert_int_equal(count_at(f, f->url), 2);
}

static void a_long_name_is_shortened_and_stays_unique(void **state)
{
    fixture *f = *state;
    char names[2][600];
    hone_store *store = open_store(f, f->url);
    for (size_t i = 0; i < 2; i++) {
        memset(names[i], 'a', sizeof names[i] - 1);
        names[i][sizeof names[i] - 2] = (char)('a' + i);
        names[i][sizeof names[i] - 1] = '\0';
        put_one(f, store, names[i], "0123456789abcdef");
    }
    hone_store_close(&store);
    assert_int_equal(count_names(f, ".json"), 2);
    assert_int_equal(count_at(f, f->url), 2);
}

static void a_file_holds_all_algorithms_when_it_is_the_store(void **state)
{
    fixture *f = *state;
    hone_store *store = open_store(f, f->file_url);
    put_one(f, store, "rms_norm", "0123456789abcdef");
    put_one(f, store, "softmax", "0123456789abcdef");
    hone_store_close(&store);
    assert_int_equal(count_names(f, ".json"), 2); // the file and its lock
    assert_int_equal(count_at(f, f->file_url), 2);
}

static void mode_and_link_are_kept_and_nothing_is_left_behind(void **state)
{
    fixture *f = *state;
    struct stat info;
    char target[TEMPORARY_PATH_SIZE];
    snprintf(target, sizeof target, "%s/elsewhere.json", f->folder.path);
    hone_store *store = open_store(f, f->file_url);
    put_one(f, store, "rms_norm", "0123456789abcdef");
    hone_store_close(&store);
    assert_int_equal(rename(f->file, target), 0);
    assert_int_equal(chmod(target, 0640), 0);
    assert_int_equal(symlink("elsewhere.json", f->file), 0);
    store = open_store(f, f->file_url);
    put_one(f, store, "rms_norm", "1111111111111111");
    hone_store_close(&store);
    assert_int_equal(lstat(f->file, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(stat(target, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
    assert_int_equal(count_at(f, f->file_url), 2);
    assert_int_equal(count_names(f, ".new"), 0);
}

static void a_write_of_another_process_is_visible_at_once(void **state)
{
    fixture *f = *state;
    const char *const urls[] = {f->url, f->file_url};
    for (size_t i = 0; i < 2; i++) {
        hone_store *first = open_store(f, urls[i]), *second = open_store(f, urls[i]);
        put_one(f, first, "rms_norm", i == 0 ? "000000000000000a" : "000000000000000c");
        assert_int_equal(count_decisions(second), 1 + 2 * i);
        put_one(f, second, "rms_norm", i == 0 ? "000000000000000b" : "000000000000000d");
        assert_int_equal(count_decisions(first), 2 + 2 * i);
        hone_store_close(&first);
        hone_store_close(&second);
    }
    assert_int_equal(remove(f->file), 0);
    assert_int_equal(count_at(f, f->file_url), 0);
}

static void a_file_of_each_schema_is_read(void **state)
{
    fixture *f = *state;
    static const char *const files[] = {"schema_3.json", "schema_4.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char golden[TEMPORARY_PATH_SIZE];
        hone_store_stat stat;
        snprintf(golden, sizeof golden, "%s/golden/store/%s", HONE_TEST_DATA, files[i]);
        size_t size = read_text(f, golden);
        write_text(f->file, f->text, size);
        hone_store *store = open_store(f, f->file_url);
        assert_int_equal(count_decisions(store), 1);
        assert_int_equal(hone_store_get_stat(store, &stat, &f->err), HONE_OK);
        assert_int_equal(stat.measurements, 1);
        assert_int_equal(stat.failures, 1);
        assert_int_equal(stat.invocations, 1);
        assert_int_equal(stat.aliases, 1);
        assert_int_equal(stat.foreigns, 1);
        put_one(f, store, "rms_norm", "1111111111111111");
        hone_store_close(&store);
        read_text(f, f->file);
        assert_null(strstr(f->text, "damaged"));
    }
}

static void a_file_that_was_laid_out_anew_is_read(void **state)
{
    fixture *f = *state;
    make_store(f);
    char command[6 * TEMPORARY_PATH_SIZE];
    snprintf(
        command, sizeof command, "python3 -m json.tool '%s' '%s.tmp' && mv '%s.tmp' '%s'", f->file, f->file, f->file,
        f->file);
    assert_int_equal(system(command), 0);
    assert_int_equal(count_at(f, f->url), 3);
    hone_store *store = open_store(f, f->url);
    put_one(f, store, "rms_norm", "3333333333333333");
    hone_store_close(&store);
    assert_int_equal(count_at(f, f->url), 4);
    assert_int_equal(count_names(f, "damaged"), 0);
}

// Somebody else's -----------------------------------------------------------------------------------------------------

static void a_file_of_another_format_is_refused_and_left_unchanged(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"{\"cpu|cpu|op@v1|0123456789abcdef\": {\"a\": 1}}", "import"},
        {"[]", "something else"},
        {"{\"hone_store\": 98, \"records\": [\n]}\n", "version is 98"},
        {"{\"hone_store\": 99, \"records\": []}", "version is 99"},
        {"dear diary\n{\"a\": 1}\n", "not a JSON store of hone"},
        {"{\"damaged\": 1}\n{\"checksum\": \"0123456789abcdef\"}\n", "not a JSON store of hone"},
        {"\n", "not a JSON store of hone"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(f->file, cases[i].text, strlen(cases[i].text));
        const char *const urls[] = {f->url, f->file_url};
        for (size_t j = 0; j < 2; j++) {
            hone_store *store = NULL;
            assert_int_equal(hone_store_open(hone_allocator_system(), urls[j], &store, &f->err), HONE_INCOMPATIBLE);
            assert_non_null(strstr(f->err.message, f->file));
            assert_non_null(strstr(f->err.message, cases[i].words));
        }
        read_text(f, f->file);
        assert_string_equal(f->text, cases[i].text);
        assert_int_equal(count_names(f, "json"), 1);
    }
}

// A folder may be somebody's: only names that the store gives are taken for what a crash left of it.
static void files_of_others_in_the_folder_stay(void **state)
{
    fixture *f = *state;
    char path[TEMPORARY_PATH_SIZE];
    make_store(f);
    snprintf(path, sizeof path, "%s/.profile.new", f->folder.path);
    write_text(path, "mine", 4);
    hone_store *store = open_store(f, f->url);
    put_one(f, store, "rms_norm", "4444444444444444");
    hone_store_close(&store);
    assert_int_equal(read_text(f, path), 4);
}

static void paths_that_cannot_be_are_refused(void **state)
{
    fixture *f = *state;
    hone_store *store = NULL;
    char path[5000];
    snprintf(path, sizeof path, "json:/tmp/%0*d", 4500, 1);
    assert_int_equal(hone_store_open(hone_allocator_system(), "json:", &store, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_store_open(hone_allocator_system(), path, &store, &f->err), HONE_INVALID_ARGUMENT);
    write_text(f->file, "", 0);
    snprintf(path, sizeof path, "json:%s/x", f->file);
    assert_int_equal(hone_store_open(hone_allocator_system(), path, &store, &f->err), HONE_IO);
}

// Damage --------------------------------------------------------------------------------------------------------------

static void a_bad_entry_is_passed_over_and_kept(void **state)
{
    fixture *f = *state;
    make_store(f);
    read_text(f, f->file);
    char *kernel = strstr(strstr(f->text, "1111111111111111"), "avx512");
    memcpy(kernel, "avx513", 6);
    write_text(f->file, f->text, strlen(f->text));
    assert_int_equal(count_at(f, f->url), 2);
    // It is not lost when the file is written again, and a new put takes its place.
    hone_store *store = open_store(f, f->url);
    put_one(f, store, "rms_norm", "1111111111111111");
    hone_store_close(&store);
    assert_int_equal(count_at(f, f->url), 3);
    read_text(f, f->file);
    assert_non_null(strstr(f->text, "{\"damaged\": "));
    assert_non_null(strstr(f->text, "avx513"));
    assert_non_null(strstr(f->text, "checksum"));
    store = open_store(f, f->url); // until somebody says that it may go
    assert_int_equal(hone_store_clear_quarantine(store, &f->err), HONE_OK);
    hone_store_close(&store);
    read_text(f, f->file);
    assert_null(strstr(f->text, "{\"damaged\": "));
    assert_int_equal(count_at(f, f->url), 3);
}

static void a_record_in_the_file_of_another_algorithm_is_not_served(void **state)
{
    fixture *f = *state;
    char other[TEMPORARY_PATH_SIZE];
    make_store(f);
    snprintf(other, sizeof other, "%s/softmax.json", f->folder.path);
    assert_int_equal(rename(f->file, other), 0);
    assert_int_equal(count_at(f, f->url), 0);
    assert_int_equal(rename(other, f->file), 0);
    assert_int_equal(count_at(f, f->url), 3);
}

// Opens, puts one record and looks whether everything sound is there, and nothing else.
static void survive(fixture *f, size_t least)
{
    hone_store *store = open_store(f, f->url);
    size_t before = count_decisions(store);
    assert_in_range(before, least, 3);
    put_one(f, store, "rms_norm", "3333333333333333");
    assert_int_equal(count_decisions(store), before + 1);
    hone_store_close(&store);
    assert_int_equal(count_at(f, f->url), before + 1);
}

static void remove_aside(const fixture *f)
{
    char command[2 * TEMPORARY_PATH_SIZE];
    snprintf(command, sizeof command, "rm -f '%s'.damaged-*", f->file);
    assert_int_equal(system(command), 0);
}

static void a_file_cut_anywhere_serves_what_is_whole(void **state)
{
    fixture *f = *state;
    make_store(f);
    size_t size = read_text(f, f->file);
    char *whole = malloc(size);
    assert_non_null(whole);
    memcpy(whole, f->text, size);
    for (size_t cut = 0; cut < size; cut += 7) {
        // Less than the first word might be anybody's.
        if (cut > 0 && cut < strlen("{\"hone_store\"")) continue;
        write_text(f->file, whole, cut);
        size_t lines = 0;
        for (size_t i = 0; i < cut; i++)
            lines += whole[i] == '\n';
        survive(f, lines <= 1 ? 0 : lines - 1);
        if (cut > 0) assert_true(count_names(f, "damaged-") == 1);
        remove_aside(f);
    }
    free(whole);
}

static void one_bit_in_each_byte_costs_at_most_its_record(void **state)
{
    fixture *f = *state;
    make_store(f);
    size_t size = read_text(f, f->file);
    char *whole = malloc(size + 1);
    assert_non_null(whole);
    memcpy(whole, f->text, size + 1);
    for (size_t i = 0; i < size; i++) {
        hone_store *store = NULL;
        size_t costs = whole[i] == '\n' ? 2 : 1; // a line's end joins it with the next
        whole[i] ^= (char)(1 << (i * 5 % 8));
        write_text(f->file, whole, size);
        hone_status status = hone_store_open(hone_allocator_system(), f->url, &store, &f->err);
        if (status == HONE_OK) {
            // In the first line a bit can damage the file as a whole, which is still read line by line.
            assert_in_range(count_decisions(store), 3 - costs, 3);
        } else {
            assert_int_equal(status, HONE_INCOMPATIBLE); // the version's digit
            assert_true(i < 64);
        }
        hone_store_close(&store);
        whole[i] ^= (char)(1 << (i * 5 % 8));
    }
    free(whole);
}

// The head of a store, and nothing of it behind.
static void noise_is_kept_aside_before_it_is_written_over(void **state)
{
    fixture *f = *state;
    static const char head[] = "{\"hone_store\": 3, \"rec";
    char noise[8192];
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)(i * 31 + 7);
    memcpy(noise, head, sizeof head - 1);
    write_text(f->file, noise, sizeof noise);
    assert_int_equal(count_at(f, f->url), 0);
    assert_int_equal(read_text(f, f->file), sizeof noise); // looking at it changes nothing
    survive(f, 0);
    assert_int_equal(count_names(f, "damaged-"), 1);
}

// A full disk ---------------------------------------------------------------------------------------------------------

static void a_put_that_cannot_be_written_changes_nothing(void **state)
{
    fixture *f = *state;
    make_store(f);
    hone_store *store = open_store(f, f->url);
    struct rlimit full = {0}, old = {0};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    full = (struct rlimit){600, old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
    hone_store_decision put = sample_decision();
    put.key.key = "3333333333333333";
    hone_status status = hone_store_put(store, &put, &f->err);
    size_t served = count_decisions(store);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, HONE_IO);
    assert_non_null(strstr(f->err.message, "unchanged"));
    assert_int_equal(served, 3);
    assert_int_equal(count_names(f, ".new"), 0);
    // And goes on once there is room.
    assert_int_equal(hone_store_put(store, &put, &f->err), HONE_OK);
    assert_int_equal(count_decisions(store), 4);
    hone_store_close(&store);
}

// Crashes -------------------------------------------------------------------------------------------------------------

static void the_next_open_finishes_an_interrupted_change_of_several_files(void **state)
{
    fixture *f = *state;
    char path[TEMPORARY_PATH_SIZE];
    make_store(f);
    size_t size = read_text(f, f->file);
    hone_store *store = open_store(f, f->url);
    put_one(f, store, "rms_norm", "3333333333333333");
    hone_store_close(&store);
    // As a crash leaves it after the list and before the renames: one file done, one not.
    write_text(f->file, f->text, size);
    snprintf(path, sizeof path, "%s/.rms_norm.json.new", f->folder.path);
    store = open_store(f, f->url);
    hone_store_close(&store);
    char *at = strstr(f->text, "2222222222222222");
    assert_non_null(at);
    f->text[size] = '\0';
    write_text(path, "{\"hone_store\": 2, \"records\": [\n]}\n", 33);
    snprintf(path, sizeof path, "%s/.commit", f->folder.path);
    write_text(path, "../../evil.json\n.hidden.json\nrms_norm.json\nsoftmax.json\n", 57);
    snprintf(path, sizeof path, "%s/.lock", f->folder.path);
    write_text(path, "0000000000000003w", 17);
    store = open_store(f, f->url);
    assert_int_equal(count_decisions(store), 0);
    hone_store_close(&store);
    assert_int_equal(count_names(f, ".new"), 0);
    assert_int_equal(count_names(f, ".commit"), 0);
}

static void files_of_a_change_that_crashed_before_its_list_are_dropped(void **state)
{
    fixture *f = *state;
    char path[TEMPORARY_PATH_SIZE];
    make_store(f);
    snprintf(path, sizeof path, "%s/.rms_norm.json.new", f->folder.path);
    write_text(path, "half", 4);
    snprintf(path, sizeof path, "%s/.lock", f->folder.path);
    write_text(path, "0000000000000002w", 17);
    assert_int_equal(count_at(f, f->url), 3);
    assert_int_equal(count_names(f, ".new"), 0);
}

enum { PROCESSES = 8, PUTS = 25 };

// One of several programs that share a store; its exit status counts the puts that failed.
static int put_many(const char *url, int number)
{
    static const char *const algorithms[] = {"rms_norm", "softmax", "matmul"};
    hone_store *store = NULL;
    hone_error err;
    if (hone_store_open(hone_allocator_system(), url, &store, &err) != HONE_OK) return PUTS;
    int failures = 0;
    for (int i = 0; i < PUTS; i++) {
        char key[32];
        snprintf(key, sizeof key, "%08x%08x", (unsigned)number, (unsigned)i);
        hone_store_decision put[2] = {sample_decision(), sample_decision()};
        put[0].key.key = put[1].key.key = key;
        put[0].key.algorithm = algorithms[i % 3];
        put[1].key.algorithm = algorithms[(i + 1) % 3];
        hone_status status;
        // Who waits for seven others and their disk may be told to try again.
        while ((status = hone_store_put_all(store, put, 2, &err)) == HONE_BUSY)
            continue;
        failures += status != HONE_OK;
    }
    hone_store_close(&store);
    return failures;
}

static void assert_all_survive(fixture *f, const char *url)
{
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) _exit(put_many(url, i));
    }
    for (int i = 0; i < PROCESSES; i++) {
        int how = 0;
        assert_int_equal(waitpid(children[i], &how, 0), children[i]);
        assert_true(WIFEXITED(how));
        assert_int_equal(WEXITSTATUS(how), 0);
    }
    assert_int_equal(count_at(f, url), 2 * PROCESSES * PUTS);
    assert_int_equal(count_names(f, ".new"), 0);
}

static void puts_of_eight_processes_all_survive_in_a_folder(void **state)
{
    fixture *f = *state;
    assert_all_survive(f, f->url);
}

static void puts_of_eight_processes_all_survive_in_a_file(void **state)
{
    fixture *f = *state;
    assert_all_survive(f, f->file_url);
}

#define JSON_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        JSON_TEST(each_algorithm_has_a_file_and_what_has_none_another),
        JSON_TEST(a_long_name_is_shortened_and_stays_unique),
        JSON_TEST(a_file_holds_all_algorithms_when_it_is_the_store),
        JSON_TEST(mode_and_link_are_kept_and_nothing_is_left_behind),
        JSON_TEST(a_write_of_another_process_is_visible_at_once),
        JSON_TEST(a_file_of_each_schema_is_read),
        JSON_TEST(a_file_that_was_laid_out_anew_is_read),
        JSON_TEST(a_file_of_another_format_is_refused_and_left_unchanged),
        JSON_TEST(files_of_others_in_the_folder_stay),
        JSON_TEST(paths_that_cannot_be_are_refused),
        JSON_TEST(a_bad_entry_is_passed_over_and_kept),
        JSON_TEST(a_record_in_the_file_of_another_algorithm_is_not_served),
        JSON_TEST(a_file_cut_anywhere_serves_what_is_whole),
        JSON_TEST(one_bit_in_each_byte_costs_at_most_its_record),
        JSON_TEST(noise_is_kept_aside_before_it_is_written_over),
        JSON_TEST(a_put_that_cannot_be_written_changes_nothing),
        JSON_TEST(the_next_open_finishes_an_interrupted_change_of_several_files),
        JSON_TEST(files_of_a_change_that_crashed_before_its_list_are_dropped),
        JSON_TEST(puts_of_eight_processes_all_survive_in_a_folder),
        JSON_TEST(puts_of_eight_processes_all_survive_in_a_file),
    };
    return cmocka_run_group_tests_name("store json", tests, NULL, NULL);
}
