// A cache of the program's own: what it finds out about its operations, in memory or in a store that other processes
// share. Arguments, all or none: URL of a store, and device, operation and key of a value to show.
#include <hone/hone.h>

#include <stdio.h>

static void show(hone_own_cache *cache, const char *what, const hone_own_value *key)
{
    char *json = NULL;
    hone_error err;
    if (hone_own_cache_get(cache, key, &json, &err) == HONE_OK)
        printf("%s: %s\n", what, json);
    else
        printf("%s: %s\n", what, err.message);
    hone_text_release(&json);
}

// Other values for a stretch of code: of this thread, and of those that enter what it captured.
static hone_status show_overlaid(hone_own_cache *cache, const hone_own_value *key, hone_error *err)
{
    hone_own_overlay *overlay = NULL;
    const hone_own_value other = {key->device, key->operation, key->key, "{\"rows\":32}"};
    hone_status status = hone_own_overlay_derive((hone_allocator){0}, NULL, &other, 1, &overlay, err);
    if (status != HONE_OK) return status;
    hone_own_overlay *previous = hone_own_overlay_enter(overlay);
    show(cache, "inside", key);
    hone_own_overlay_enter(previous);
    hone_own_overlay_release(&overlay);
    show(cache, "after", key);
    return HONE_OK;
}

static bool count(void *ctx, const hone_own_value *value)
{
    (void)value;
    ++*(size_t *)ctx;
    return true;
}

int main(int argc, char **argv)
{
    hone_own_cache *cache = NULL;
    hone_error err;
    char key[HONE_OWN_KEY_SIZE];
    const hone_own_cache_options options = {
        .struct_size = sizeof options, .name = "my_kernels", .url = argc > 1 ? argv[1] : NULL};
    hone_status status = hone_own_cache_open(&options, &cache, &err);
    // What the key is made of is the program's to say: any JSON, or options.make_key.
    if (status == HONE_OK)
        status = hone_own_cache_make_key(cache, "[[[512,512]],{\"causal\":true}]", key, sizeof key, &err);
    const hone_own_value tiles = {"cpu", "matmul@v1", key, "{\"rows\":128,\"threads\":2}"};
    if (status == HONE_OK) status = hone_own_cache_put(cache, &tiles, &err);
    if (status == HONE_OK) printf("key %s\n", key);
    if (status == HONE_OK) status = show_overlaid(cache, &tiles, &err);
    if (status == HONE_OK && argc > 4) show(cache, argv[4], &(hone_own_value){argv[2], argv[3], argv[4], NULL});
    size_t values = 0;
    if (status == HONE_OK) status = hone_own_cache_keys(cache, count, &values, &err);
    if (status == HONE_OK) printf("%zu values\n", values);
    if (status == HONE_OK && argc == 1)
        status = hone_own_cache_clear(cache, &err); // one in memory; a store keeps its values
    if (status != HONE_OK) fprintf(stderr, "%s: %s\n", err.where, err.message);
    hone_own_cache_close(&cache);
    return status == HONE_OK ? 0 : 1;
}
