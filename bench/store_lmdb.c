// LMDB with the same rows: the key's columns joined are its key, the others joined its value. Like hone's store without
// HONE_STORE_SYNC=full it leaves to the system when the disk has what was put.
#include "stores.h"

#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_SIZE = 4096 };
#define MAP_SIZE ((size_t)8 << 30)

typedef struct lmdb {
    MDB_env *env;
    MDB_dbi table;
    MDB_txn *reader; // reset between the gets
} lmdb;

// Texts one after the other, each with its NUL.
typedef struct packed {
    char bytes[VALUE_SIZE];
    size_t size;
} packed;

static void add(packed *out, const char *text)
{
    size_t size = strlen(text) + 1;
    if (out->size + size > sizeof out->bytes) return;
    memcpy(out->bytes + out->size, text, size);
    out->size += size;
}

static void pack_key(packed *out, const hone_store_key *key)
{
    out->size = 0;
    add(out, key->device);
    add(out, key->algorithm);
    add(out, key->version);
    add(out, key->key);
    add(out, "0");
}

static void pack_value(packed *out, const hone_store_decision *row)
{
    const char *const texts[] = {row->key.spec, row->call,     row->kernel,   row->platform,   row->config,
                                 row->source,   row->revision, row->evidence, row->environment};
    memcpy(out->bytes, &row->time_ns, sizeof row->time_ns);
    out->bytes[sizeof row->time_ns] = (char)row->verified;
    out->size = sizeof row->time_ns + 1;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        add(out, texts[i]);
}

static void lmdb_close(void *store)
{
    lmdb *self = store;
    mdb_txn_abort(self->reader);
    mdb_env_close(self->env);
    free(self);
}

static int open_table(lmdb *self)
{
    MDB_txn *txn = NULL;
    int code = mdb_txn_begin(self->env, NULL, 0, &txn);
    if (code == 0) code = mdb_dbi_open(txn, NULL, 0, &self->table);
    if (code == 0) code = mdb_txn_commit(txn);
    if (code == 0) code = mdb_txn_begin(self->env, NULL, MDB_RDONLY, &self->reader);
    if (code == 0) mdb_txn_reset(self->reader);
    return code;
}

static void *lmdb_open(const char *folder, uint32_t count)
{
    char path[512];
    lmdb *self = calloc(1, sizeof *self);
    if (self == NULL) return NULL;
    snprintf(path, sizeof path, "%s/lmdb-%u.mdb", folder, count);
    int code = mdb_env_create(&self->env);
    if (code == 0) code = mdb_env_set_mapsize(self->env, MAP_SIZE);
    if (code == 0) code = mdb_env_open(self->env, path, MDB_NOSUBDIR | MDB_NOSYNC, 0644);
    if (code == 0) code = open_table(self);
    if (code == 0) return self;
    fprintf(stderr, "bench_store: %s: %s\n", path, mdb_strerror(code));
    lmdb_close(self);
    return NULL;
}

static int put_into(lmdb *self, MDB_txn *txn, const hone_store_decision *decision)
{
    packed key, value;
    pack_key(&key, &decision->key);
    pack_value(&value, decision);
    return mdb_put(txn, self->table, &(MDB_val){key.size, key.bytes}, &(MDB_val){value.size, value.bytes}, 0);
}

static int lmdb_put_all(void *store, const hone_store_decision *decisions, size_t count)
{
    lmdb *self = store;
    MDB_txn *txn = NULL;
    int code = mdb_txn_begin(self->env, NULL, 0, &txn);
    for (size_t i = 0; i < count && code == 0; i++)
        code = put_into(self, txn, &decisions[i]);
    return code == 0 ? mdb_txn_commit(txn) : code;
}

static int lmdb_put(void *store, const hone_store_decision *decision)
{
    return lmdb_put_all(store, decision, 1);
}

static int lmdb_get(void *store, const hone_store_key *key, uint64_t *seen)
{
    lmdb *self = store;
    packed joined;
    MDB_val value = {0, NULL};
    pack_key(&joined, key);
    int code = mdb_txn_renew(self->reader);
    if (code == 0) code = mdb_get(self->reader, self->table, &(MDB_val){joined.size, joined.bytes}, &value);
    const char *at = (const char *)value.mv_data + sizeof(double) + 1,
               *end = (const char *)value.mv_data + value.mv_size;
    while (code == 0 && at < end) {
        size_t size = strlen(at);
        *seen += size;
        at += size + 1;
    }
    mdb_txn_reset(self->reader);
    return code;
}

const bench_store bench_lmdb = {
    .name = "LMDB",
    .open = lmdb_open,
    .put_all = lmdb_put_all,
    .get = lmdb_get,
    .put = lmdb_put,
    .close = lmdb_close,
};
