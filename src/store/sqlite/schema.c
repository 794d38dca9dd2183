// The tables of each schema. Columns stand in the order of the row shapes in store/common/row.c, and each record's last
// column is the checksum of the others.
//
// Tables are WITHOUT ROWID and keyed by columns: the key is the table. A call that was measured has a number,
// since its fingerprint and canonical text would otherwise stand in each of its measurements. Decisions are what calls
// wait for, and stand under numbers since schema 4 (place.h): a tree keyed by columns has whole records in its inner
// nodes, is eight levels deep with a million of them, and grows slow.
#include "store/sqlite/connection.h"

#include <string.h>

// Never edited once released: golden files of each schema (tests/golden/store) are migrated by these steps.
static const char schema_1[] =
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE decision("
    " device TEXT NOT NULL, algorithm TEXT NOT NULL, version TEXT NOT NULL, key TEXT NOT NULL,"
    " regime INTEGER NOT NULL, spec TEXT, call TEXT, kernel TEXT NOT NULL, platform TEXT NOT NULL,"
    " config TEXT NOT NULL, source TEXT, revision TEXT, verified INTEGER NOT NULL, time_ns REAL NOT NULL,"
    " evidence TEXT, environment TEXT, checksum INTEGER NOT NULL,"
    " PRIMARY KEY(device, algorithm, version, key, regime)) WITHOUT ROWID;"
    "CREATE TABLE measured_call("
    " id INTEGER PRIMARY KEY, device TEXT NOT NULL, algorithm TEXT NOT NULL, version TEXT NOT NULL,"
    " key TEXT NOT NULL, spec TEXT NOT NULL, UNIQUE(device, algorithm, version, key, spec));"
    "CREATE TABLE measurement("
    " call INTEGER NOT NULL, regime INTEGER NOT NULL, kernel TEXT NOT NULL, config TEXT NOT NULL,"
    " revision TEXT, time_ns REAL NOT NULL, low_ns REAL NOT NULL, high_ns REAL NOT NULL,"
    " samples INTEGER NOT NULL, max_error REAL NOT NULL, checksum INTEGER NOT NULL,"
    " PRIMARY KEY(call, regime, kernel, config)) WITHOUT ROWID;"
    "CREATE TABLE failure("
    " call INTEGER NOT NULL, regime INTEGER NOT NULL, kernel TEXT NOT NULL, config TEXT NOT NULL,"
    " revision TEXT, failure INTEGER NOT NULL, reason TEXT, checksum INTEGER NOT NULL,"
    " PRIMARY KEY(call, regime, kernel, config)) WITHOUT ROWID;"
    "CREATE TABLE invocation("
    " algorithm TEXT NOT NULL, version TEXT NOT NULL, key TEXT NOT NULL, device TEXT NOT NULL,"
    " spec TEXT NOT NULL, call TEXT, count INTEGER NOT NULL, first REAL NOT NULL, last REAL NOT NULL,"
    " kernel TEXT, decided TEXT, checksum INTEGER NOT NULL,"
    " PRIMARY KEY(algorithm, version, key, device, spec)) WITHOUT ROWID;"
    "CREATE TABLE alias("
    " scheme TEXT NOT NULL, operation TEXT NOT NULL, foreign_key TEXT NOT NULL, foreign_spec TEXT,"
    " device TEXT, algorithm TEXT NOT NULL, version TEXT NOT NULL, key TEXT NOT NULL, spec TEXT,"
    " checksum INTEGER NOT NULL, PRIMARY KEY(scheme, operation, foreign_key)) WITHOUT ROWID;";

// A quarantined record stands as text: what it is can no longer be told from its bytes.
static const char schema_2[] =
    "CREATE TABLE foreign_config("
    " scheme TEXT NOT NULL, operation TEXT NOT NULL, device TEXT NOT NULL, foreign_key TEXT NOT NULL,"
    " text TEXT NOT NULL, origin TEXT, checksum INTEGER NOT NULL,"
    " PRIMARY KEY(scheme, operation, device, foreign_key)) WITHOUT ROWID;"
    "CREATE TABLE quarantine("
    " kind TEXT NOT NULL, record TEXT NOT NULL, reason TEXT NOT NULL, found REAL NOT NULL, checksum INTEGER NOT NULL,"
    " PRIMARY KEY(kind, record)) WITHOUT ROWID;";

// NULL in records of before: hone_row_checksum leaves it out.
static const char schema_3[] = "ALTER TABLE measurement ADD COLUMN environment TEXT;"
                               "ALTER TABLE measurement ADD COLUMN measured TEXT;"
                               "ALTER TABLE failure ADD COLUMN environment TEXT;"
                               "ALTER TABLE failure ADD COLUMN measured TEXT;";

// In the place of the decisions of before, which migrate.c copies.
static const char schema_4[] =
    "CREATE TABLE decision("
    " id INTEGER PRIMARY KEY, device TEXT NOT NULL, algorithm TEXT NOT NULL, version TEXT NOT NULL, key TEXT NOT NULL,"
    " regime INTEGER NOT NULL, spec TEXT, call TEXT, kernel TEXT NOT NULL, platform TEXT NOT NULL,"
    " config TEXT NOT NULL, source TEXT, revision TEXT, verified INTEGER NOT NULL, time_ns REAL NOT NULL,"
    " evidence TEXT, environment TEXT, checksum INTEGER NOT NULL);";

// As in schema 3: NULL in records of before.
static const char schema_5[] = "ALTER TABLE measurement ADD COLUMN samples_ns TEXT;";

static const char *const schemas[] = {NULL, schema_1, schema_2, schema_3, schema_4, schema_5};
_Static_assert(sizeof schemas / sizeof *schemas == HONE_SQL_SCHEMA + 1, "a step to each schema");

const char *hone_sql_schema(int version)
{
    return schemas[version];
}

// What ALTER TABLE has put into the text of a table, behind its last column.
static const char *const added[] = {
    "", ", environment TEXT, measured TEXT", ", environment TEXT, measured TEXT, samples_ns TEXT"};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

// The next table that a schema makes and that a later one, up to version, does not replace; NULL: no more.
static const char *next_table(const char *at, int of, int version)
{
    const bool replaced = of < HONE_SQL_PLACE_SCHEMA && version >= HONE_SQL_PLACE_SCHEMA;
    at = strstr(at, "CREATE TABLE");
    return at != NULL && replaced && begins(at, "CREATE TABLE decision(") ? strstr(at + 1, "CREATE TABLE") : at;
}

// Whether one of the schemas makes the table whose text is head and tail.
static bool is_made(int version, const char *head, size_t head_size, const char *tail)
{
    for (int of = 1; of <= version; of++)
        for (const char *at = schemas[of]; (at = next_table(at, of, version)) != NULL; at++) {
            if (strncmp(at, head, head_size) != 0 || !begins(at + head_size, tail)) continue;
            if (at[head_size + strlen(tail)] == ';') return true;
        }
    return false;
}

bool hone_sql_is_table(const char *sql, int version)
{
    for (size_t i = 0; i < sizeof added / sizeof *added; i++) {
        const char *head_end = added[i][0] == '\0' ? sql : strstr(sql, added[i]);
        if (head_end == NULL) continue;
        if (is_made(version, sql, (size_t)(head_end - sql), head_end + strlen(added[i]))) return true;
    }
    return false;
}

int hone_sql_table_count(int version)
{
    int count = 0;
    for (int of = 1; of <= version; of++)
        for (const char *at = schemas[of]; (at = next_table(at, of, version)) != NULL; at++)
            count++;
    return count;
}
