// Every word of SQL that hone speaks. Columns stand in the order of the row shapes in store/row.c, and each
// record's last column is the checksum of the others.
//
// Tables are WITHOUT ROWID and keyed by columns: the key is the table. A call that was measured has a number,
// since its fingerprint and canonical text would otherwise stand in each of its measurements.
#include "store/ops.h"
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

static const char *const schemas[] = {NULL, schema_1, schema_2, schema_3};
_Static_assert(sizeof schemas / sizeof *schemas == HONE_STORE_SCHEMA + 1, "a step to each schema");

const char *hone_sql_schema(int version)
{
    return schemas[version];
}

// What ALTER TABLE has put into the text of a table, behind its last column.
static const char *const added[] = {"", ", environment TEXT, measured TEXT"};

// Whether a schema makes the table whose text is head and tail.
static bool is_made(const char *schema, const char *head, size_t head_size, const char *tail)
{
    for (const char *at = schema; (at = strstr(at, "CREATE TABLE")) != NULL; at++) {
        if (strncmp(at, head, head_size) != 0 || strncmp(at + head_size, tail, strlen(tail)) != 0) continue;
        if (at[head_size + strlen(tail)] == ';') return true;
    }
    return false;
}

bool hone_sql_is_table(const char *sql, int version)
{
    for (size_t i = 0; i < sizeof added / sizeof *added; i++) {
        const char *head_end = added[i][0] == '\0' ? sql : strstr(sql, added[i]);
        if (head_end == NULL) continue;
        for (int v = 1; v <= version; v++)
            if (is_made(schemas[v], sql, (size_t)(head_end - sql), head_end + strlen(added[i]))) return true;
    }
    return false;
}

int hone_sql_table_count(int version)
{
    int count = 0;
    for (int i = 1; i <= version; i++)
        for (const char *at = schemas[i]; (at = strstr(at, "CREATE TABLE")) != NULL; at++)
            count++;
    return count;
}

#define DECISION_COLUMNS                                                                                               \
    "device, algorithm, version, key, regime, spec, call, kernel, platform, config, source, revision, "                \
    "verified, time_ns, evidence, environment, checksum"
#define INVOCATION_COLUMNS "algorithm, version, key, device, spec, call, count, first, last, kernel, decided, checksum"
#define CALL_COLUMNS       "c.device, c.algorithm, c.version, c.key, c.spec, m.regime, m.kernel, m.config, m.revision, "
#define CALL_KEY           " device = ?1 AND algorithm = ?2 AND version = ?3 AND key = ?4"
// Where one of two canonical texts is missing, nobody can say that they differ.
#define SPEC_AGREES      " AND (?5 IS NULL OR spec IS NULL OR spec = ?5)"
#define CALL_SPEC_AGREES " AND (?5 IS NULL OR spec = '' OR spec = ?5)"
#define CALLS            " (SELECT id FROM measured_call WHERE" CALL_KEY CALL_SPEC_AGREES ")"
// Each parameter lets all through when it is NULL, which is why the indexes do not serve it.
#define ANY_KEY                                                                                                        \
    " (?1 IS NULL OR device = ?1) AND (?2 IS NULL OR algorithm = ?2) AND (?3 IS NULL OR version = ?3)"                 \
    " AND (?4 IS NULL OR key = ?4)"
#define ANY_CALLS      " (SELECT id FROM measured_call WHERE" ANY_KEY CALL_SPEC_AGREES ")"
#define CALL_OF        " (SELECT id FROM measured_call WHERE" CALL_KEY " AND spec = ?5)"
#define MEASURED_KEY   " AND regime = ?6 AND kernel = ?7 AND config = ?8"
#define ORPHANED       " WHERE call NOT IN (SELECT id FROM measured_call)"
#define MEASURED_ORDER " ORDER BY c.device, c.algorithm, c.version, c.key, c.spec, m.regime, m.kernel, m.config"
// since_3: the columns that came with schema 3, or NULLs.
#define SINCE_3  "m.environment, m.measured"
#define BEFORE_3 "NULL, NULL"
#define MEASUREMENT_SCAN(since_3)                                                                                      \
    "SELECT " CALL_COLUMNS "m.time_ns, m.low_ns, m.high_ns, m.samples, m.max_error, " since_3 ", m.checksum"           \
    " FROM measured_call c JOIN measurement m ON m.call = c.id WHERE c.id IN"
#define FAILURE_SCAN(since_3)                                                                                          \
    "SELECT " CALL_COLUMNS "m.failure, m.reason, " since_3 ", m.checksum"                                              \
    " FROM measured_call c JOIN failure m ON m.call = c.id WHERE c.id IN"
#define MEASUREMENT_ORPHANS(since_3)                                                                                   \
    "SELECT NULL, NULL, NULL, NULL, NULL, regime, kernel, config, revision, time_ns, low_ns, high_ns, samples,"        \
    " max_error, " since_3 ", checksum FROM measurement m" ORPHANED
#define FAILURE_ORPHANS(since_3)                                                                                       \
    "SELECT NULL, NULL, NULL, NULL, NULL, regime, kernel, config, revision, failure, reason, " since_3                 \
    ", checksum FROM failure m" ORPHANED
#define ALIAS_COLUMNS "scheme, operation, foreign_key, foreign_spec, device, algorithm, version, key, spec, checksum"

static const char *const texts[HONE_SQL_COUNT] = {
    // IMMEDIATE takes the write lock at once, where waiting for it cannot end in a deadlock.
    [HONE_SQL_BEGIN] = "BEGIN IMMEDIATE",
    [HONE_SQL_COMMIT] = "COMMIT",
    [HONE_SQL_ROLLBACK] = "ROLLBACK",

    [HONE_SQL_DECISION_GET] = "SELECT " DECISION_COLUMNS " FROM decision WHERE" CALL_KEY " AND regime = ?5",
    // An update in place: REPLACE deletes and inserts anew, which in a large table costs twice as much.
    [HONE_SQL_DECISION_PUT] =
        "INSERT INTO decision VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
        " ON CONFLICT(device, algorithm, version, key, regime) DO UPDATE SET spec = excluded.spec, call = "
        "excluded.call,"
        " kernel = excluded.kernel, platform = excluded.platform, config = excluded.config, source = excluded.source,"
        " revision = excluded.revision, verified = excluded.verified, time_ns = excluded.time_ns,"
        " evidence = excluded.evidence, environment = excluded.environment, checksum = excluded.checksum",
    [HONE_SQL_DECISION_REMOVE] = "DELETE FROM decision WHERE" CALL_KEY SPEC_AGREES,
    [HONE_SQL_DECISION_SCAN] = "SELECT " DECISION_COLUMNS " FROM decision WHERE" ANY_KEY SPEC_AGREES
                               " ORDER BY device, algorithm, version, key, regime",
    [HONE_SQL_DECISION_SCAN_DEVICE] =
        "SELECT " DECISION_COLUMNS " FROM decision WHERE device = ?1"
        " AND (?2 IS NULL OR algorithm = ?2) AND (?3 IS NULL OR version = ?3) AND (?4 IS NULL OR key = ?4)" SPEC_AGREES
        " ORDER BY device, algorithm, version, key, regime",

    [HONE_SQL_CALL_FIND] = "SELECT id FROM measured_call WHERE" CALL_KEY " AND spec = ?5",
    [HONE_SQL_CALL_ADD] = "INSERT INTO measured_call(device, algorithm, version, key, spec) VALUES(?,?,?,?,?)",
    [HONE_SQL_CALL_REMOVE] = "DELETE FROM measured_call WHERE" CALL_KEY CALL_SPEC_AGREES,

    [HONE_SQL_MEASUREMENT_PUT] =
        "INSERT OR REPLACE INTO measurement(call, regime, kernel, config, revision, time_ns, low_ns, high_ns, samples,"
        " max_error, environment, measured, checksum) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [HONE_SQL_MEASUREMENT_DROP] = "DELETE FROM measurement WHERE call = ? AND regime = ? AND kernel = ? AND config = ?",
    [HONE_SQL_MEASUREMENT_SCAN] = MEASUREMENT_SCAN(SINCE_3) ANY_CALLS MEASURED_ORDER,
    [HONE_SQL_MEASUREMENT_SCAN_CALL] = MEASUREMENT_SCAN(SINCE_3) CALLS MEASURED_ORDER,
    [HONE_SQL_MEASUREMENT_REMOVE] = "DELETE FROM measurement WHERE call IN" CALLS,

    [HONE_SQL_FAILURE_PUT] =
        "INSERT OR REPLACE INTO failure(call, regime, kernel, config, revision, failure, reason, environment, measured,"
        " checksum) VALUES(?,?,?,?,?,?,?,?,?,?)",
    [HONE_SQL_FAILURE_DROP] = "DELETE FROM failure WHERE call = ? AND regime = ? AND kernel = ? AND config = ?",
    [HONE_SQL_FAILURE_SCAN] = FAILURE_SCAN(SINCE_3) ANY_CALLS MEASURED_ORDER,
    [HONE_SQL_FAILURE_SCAN_CALL] = FAILURE_SCAN(SINCE_3) CALLS MEASURED_ORDER,
    [HONE_SQL_FAILURE_REMOVE] = "DELETE FROM failure WHERE call IN" CALLS,

    [HONE_SQL_INVOCATION_GET] =
        "SELECT " INVOCATION_COLUMNS
        " FROM invocation WHERE algorithm = ? AND version = ? AND key = ? AND device = ? AND spec = ?",
    [HONE_SQL_INVOCATION_PUT] = "INSERT OR REPLACE INTO invocation VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
    [HONE_SQL_INVOCATION_SCAN] = "SELECT " INVOCATION_COLUMNS " FROM invocation WHERE" ANY_KEY CALL_SPEC_AGREES
                                 " ORDER BY count DESC, algorithm, version, key, device, spec",
    [HONE_SQL_INVOCATION_SCAN_CALL] = "SELECT " INVOCATION_COLUMNS " FROM invocation WHERE (?1 IS NULL OR device = ?1)"
                                      " AND algorithm = ?2 AND version = ?3 AND key = ?4" CALL_SPEC_AGREES
                                      " ORDER BY count DESC, algorithm, version, key, device, spec",
    [HONE_SQL_INVOCATION_CLEAR] = "DELETE FROM invocation WHERE ?1 IS NULL OR device = ?1",

    [HONE_SQL_ALIAS_PUT] = "INSERT OR REPLACE INTO alias VALUES(?,?,?,?,?,?,?,?,?,?)",
    [HONE_SQL_ALIAS_GET] = "SELECT " ALIAS_COLUMNS " FROM alias WHERE scheme = ? AND operation = ? AND foreign_key = ?",
    [HONE_SQL_ALIAS_SCAN] = "SELECT " ALIAS_COLUMNS " FROM alias WHERE ?1 IS NULL OR scheme = ?1"
                            " ORDER BY scheme, operation, foreign_key",

    [HONE_SQL_FOREIGN_PUT] = "INSERT OR REPLACE INTO foreign_config VALUES(?,?,?,?,?,?,?)",
    [HONE_SQL_FOREIGN_SCAN] = "SELECT scheme, operation, device, foreign_key, text, origin, checksum"
                              " FROM foreign_config WHERE ?1 IS NULL OR scheme = ?1"
                              " ORDER BY scheme, operation, device, foreign_key",

    [HONE_SQL_STAT] =
        "SELECT (SELECT count(*) FROM decision), (SELECT count(*) FROM measurement),"
        " (SELECT count(*) FROM failure), (SELECT count(*) FROM invocation), (SELECT count(*) FROM alias),"
        " (SELECT page_count FROM pragma_page_count()) * (SELECT page_size FROM pragma_page_size())",
    [HONE_SQL_STAT_2] = "SELECT (SELECT count(*) FROM foreign_config), (SELECT count(*) FROM quarantine)",

    [HONE_SQL_DECISION_DROP] = "DELETE FROM decision WHERE" CALL_KEY " AND regime = ?5",
    [HONE_SQL_MEASUREMENT_MOVE] = "DELETE FROM measurement WHERE call IN" CALL_OF MEASURED_KEY,
    [HONE_SQL_FAILURE_MOVE] = "DELETE FROM failure WHERE call IN" CALL_OF MEASURED_KEY,
    [HONE_SQL_INVOCATION_DROP] =
        "DELETE FROM invocation WHERE algorithm = ? AND version = ? AND key = ? AND device = ? AND spec = ?",
    [HONE_SQL_ALIAS_DROP] = "DELETE FROM alias WHERE scheme = ? AND operation = ? AND foreign_key = ?",
    [HONE_SQL_FOREIGN_DROP] =
        "DELETE FROM foreign_config WHERE scheme = ? AND operation = ? AND device = ? AND foreign_key = ?",

    [HONE_SQL_QUARANTINE_PUT] = "INSERT OR REPLACE INTO quarantine VALUES(?,?,?,?,?)",
    // So that a disk which goes bad fills the store with no more than this.
    [HONE_SQL_QUARANTINE_TRIM] = "DELETE FROM quarantine WHERE (kind, record) IN"
                                 " (SELECT kind, record FROM quarantine ORDER BY found DESC LIMIT -1 OFFSET 1000)",
    [HONE_SQL_QUARANTINE_DROP] = "DELETE FROM quarantine WHERE kind = ? AND record = ?",
    [HONE_SQL_QUARANTINE_SCAN] = "SELECT kind, record, reason, found, checksum FROM quarantine ORDER BY kind, record",
    [HONE_SQL_QUARANTINE_CLEAR] = "DELETE FROM quarantine",
    // Their call's number is damaged, there or here. No column of its stands beside them, which no checksum agrees with.
    [HONE_SQL_MEASUREMENT_ORPHANS] = MEASUREMENT_ORPHANS(SINCE_3),
    [HONE_SQL_MEASUREMENT_ORPHANS_DROP] = "DELETE FROM measurement" ORPHANED,
    [HONE_SQL_FAILURE_ORPHANS] = FAILURE_ORPHANS(SINCE_3),
    [HONE_SQL_FAILURE_ORPHANS_DROP] = "DELETE FROM failure" ORPHANED,
    [HONE_SQL_CHECK] = "PRAGMA integrity_check(1)",
};

// An older file that cannot be written is read as it is.
static const char *const texts_before_3[HONE_SQL_COUNT] = {
    [HONE_SQL_MEASUREMENT_SCAN] = MEASUREMENT_SCAN(BEFORE_3) ANY_CALLS MEASURED_ORDER,
    [HONE_SQL_MEASUREMENT_SCAN_CALL] = MEASUREMENT_SCAN(BEFORE_3) CALLS MEASURED_ORDER,
    [HONE_SQL_FAILURE_SCAN] = FAILURE_SCAN(BEFORE_3) ANY_CALLS MEASURED_ORDER,
    [HONE_SQL_FAILURE_SCAN_CALL] = FAILURE_SCAN(BEFORE_3) CALLS MEASURED_ORDER,
    [HONE_SQL_MEASUREMENT_ORPHANS] = MEASUREMENT_ORPHANS(BEFORE_3),
    [HONE_SQL_FAILURE_ORPHANS] = FAILURE_ORPHANS(BEFORE_3),
};

const char *hone_sql_text(hone_sql id, int schema)
{
    return schema > 0 && schema < 3 && texts_before_3[id] != NULL ? texts_before_3[id] : texts[id];
}
