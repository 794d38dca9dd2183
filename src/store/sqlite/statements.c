// Every word that hone asks SQLite with. Columns stand in the order of the row shapes in store/common/row.c.
#include "store/sqlite/connection.h"

#define DECISION_COLUMNS                                                                                               \
    "device, algorithm, version, key, regime, spec, call, kernel, platform, config, source, revision, "                \
    "verified, time_ns, evidence, environment, checksum"
// id: where a decision stands, or NULL.
#define DECISION_FROM(id)  "SELECT " DECISION_COLUMNS ", " id " FROM decision"
#define DECISION_ORDER     " ORDER BY device, algorithm, version, key, regime"
#define UNDECIDED          " decided IN ('heuristic', 'transfer')"
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
// Of decisions: from the first number to the last that what is asked for can have.
#define DECISION_FILTER          " WHERE id BETWEEN ?6 AND ?7 AND" ANY_KEY SPEC_AGREES
#define DECISION_FILTER_BEFORE_4 " WHERE ?6 <= ?7 AND" ANY_KEY SPEC_AGREES
#define ANY_CALLS                " (SELECT id FROM measured_call WHERE" ANY_KEY CALL_SPEC_AGREES ")"
#define CALL_OF                  " (SELECT id FROM measured_call WHERE" CALL_KEY " AND spec = ?5)"
#define MEASURED_KEY             " AND regime = ?6 AND kernel = ?7 AND config = ?8"
#define ORPHANED                 " WHERE call NOT IN (SELECT id FROM measured_call)"
#define MEASURED_ORDER           " ORDER BY c.device, c.algorithm, c.version, c.key, c.spec, m.regime, m.kernel, m.config"
// since: the columns that came with schema 3, and of measurements with 5, or NULLs.
#define SINCE_5  "m.environment, m.measured, m.samples_ns"
#define BEFORE_5 "m.environment, m.measured, NULL"
#define SINCE_3  "m.environment, m.measured"
#define BEFORE_3 "NULL, NULL"
#define MEASUREMENT_SCAN(since)                                                                                        \
    "SELECT " CALL_COLUMNS "m.time_ns, m.low_ns, m.high_ns, m.samples, m.max_error, " since ", m.checksum"             \
    " FROM measured_call c JOIN measurement m ON m.call = c.id WHERE c.id IN"
#define FAILURE_SCAN(since)                                                                                            \
    "SELECT " CALL_COLUMNS "m.failure, m.reason, " since ", m.checksum"                                                \
    " FROM measured_call c JOIN failure m ON m.call = c.id WHERE c.id IN"
#define MEASUREMENT_ORPHANS(since)                                                                                     \
    "SELECT NULL, NULL, NULL, NULL, NULL, regime, kernel, config, revision, time_ns, low_ns, high_ns, samples,"        \
    " max_error, " since ", checksum FROM measurement m" ORPHANED
#define FAILURE_ORPHANS(since)                                                                                         \
    "SELECT NULL, NULL, NULL, NULL, NULL, regime, kernel, config, revision, failure, reason, " since                   \
    ", checksum FROM failure m" ORPHANED
#define FOREIGN_COLUMNS "scheme, operation, device, foreign_key, text, origin, checksum"
#define ALIAS_COLUMNS   "scheme, operation, foreign_key, foreign_spec, device, algorithm, version, key, spec, checksum"

static const char *const texts[HONE_SQL_COUNT] = {
    // IMMEDIATE takes the write lock at once, where waiting for it cannot end in a deadlock.
    [HONE_SQL_BEGIN] = "BEGIN IMMEDIATE",
    [HONE_SQL_COMMIT] = "COMMIT",
    [HONE_SQL_ROLLBACK] = "ROLLBACK",

    [HONE_SQL_DECISION_GET] = DECISION_FROM("id") " WHERE id = ?1",
    // An update in place: REPLACE deletes and inserts anew. Where another key stands under the number, nothing is put.
    [HONE_SQL_DECISION_PUT] =
        "INSERT INTO decision(" DECISION_COLUMNS ", id) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
        " ON CONFLICT(id) DO UPDATE SET spec = excluded.spec, call = excluded.call, kernel = excluded.kernel,"
        " platform = excluded.platform, config = excluded.config, source = excluded.source,"
        " revision = excluded.revision, verified = excluded.verified, time_ns = excluded.time_ns,"
        " evidence = excluded.evidence, environment = excluded.environment, checksum = excluded.checksum"
        " WHERE key = excluded.key AND regime = excluded.regime AND device = excluded.device"
        " AND algorithm = excluded.algorithm AND version = excluded.version",
    [HONE_SQL_DECISION_REMOVE] = "DELETE FROM decision WHERE id BETWEEN ?6 AND ?7 AND" CALL_KEY SPEC_AGREES,
    [HONE_SQL_DECISION_SCAN] = DECISION_FROM("id") DECISION_FILTER DECISION_ORDER,
    [HONE_SQL_DECISION_SCAN_ANY] = DECISION_FROM("id") DECISION_FILTER,
    // Those of a place move up, so that none stands behind a gap.
    [HONE_SQL_DECISION_CLOSE_GAPS] =
        "UPDATE decision SET id = ?1 + (SELECT count(*) FROM decision d WHERE d.id >= ?1 AND d.id < decision.id)"
        " WHERE id BETWEEN ?1 AND ?2",
    [HONE_SQL_DECISION_BEFORE_4] = "SELECT " DECISION_COLUMNS ", NULL FROM decision_before_4"
                                   " ORDER BY hone_place(device, algorithm, version, key, regime)",

    [HONE_SQL_CALL_FIND] = "SELECT id FROM measured_call WHERE" CALL_KEY " AND spec = ?5",
    [HONE_SQL_CALL_ADD] = "INSERT INTO measured_call(device, algorithm, version, key, spec) VALUES(?,?,?,?,?)",
    [HONE_SQL_CALL_REMOVE] = "DELETE FROM measured_call WHERE" CALL_KEY CALL_SPEC_AGREES,

    [HONE_SQL_MEASUREMENT_PUT] =
        "INSERT OR REPLACE INTO measurement(call, regime, kernel, config, revision, time_ns, low_ns, high_ns, samples,"
        " max_error, environment, measured, samples_ns, checksum) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [HONE_SQL_MEASUREMENT_DROP] = "DELETE FROM measurement WHERE call = ? AND regime = ? AND kernel = ? AND config = ?",
    [HONE_SQL_MEASUREMENT_SCAN] = MEASUREMENT_SCAN(SINCE_5) ANY_CALLS MEASURED_ORDER,
    [HONE_SQL_MEASUREMENT_SCAN_CALL] = MEASUREMENT_SCAN(SINCE_5) CALLS MEASURED_ORDER,
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
    // Of what was made at the same moment all goes or all stays; fewer than so many: the comparison is with NULL.
    [HONE_SQL_INVOCATION_EXPIRE] = "DELETE FROM invocation WHERE" UNDECIDED
                                   " AND (last < ?1 OR last <= (SELECT last FROM invocation WHERE" UNDECIDED
                                   " ORDER BY last DESC LIMIT 1 OFFSET ?2))",

    [HONE_SQL_ALIAS_PUT] = "INSERT OR REPLACE INTO alias VALUES(?,?,?,?,?,?,?,?,?,?)",
    [HONE_SQL_ALIAS_GET] = "SELECT " ALIAS_COLUMNS " FROM alias WHERE scheme = ? AND operation = ? AND foreign_key = ?",
    [HONE_SQL_ALIAS_SCAN] = "SELECT " ALIAS_COLUMNS " FROM alias WHERE ?1 IS NULL OR scheme = ?1"
                            " ORDER BY scheme, operation, foreign_key",

    [HONE_SQL_FOREIGN_PUT] = "INSERT OR REPLACE INTO foreign_config VALUES(?,?,?,?,?,?,?)",
    [HONE_SQL_FOREIGN_GET] = "SELECT " FOREIGN_COLUMNS " FROM foreign_config"
                             " WHERE scheme = ? AND operation = ? AND device = ? AND foreign_key = ?",
    [HONE_SQL_FOREIGN_SCAN] = "SELECT " FOREIGN_COLUMNS " FROM foreign_config WHERE ?1 IS NULL OR scheme = ?1"
                              " ORDER BY scheme, operation, device, foreign_key",
    [HONE_SQL_FOREIGN_CLEAR] = "DELETE FROM foreign_config WHERE scheme = ?1",

    [HONE_SQL_STAT] =
        "SELECT (SELECT count(*) FROM decision), (SELECT count(*) FROM measurement),"
        " (SELECT count(*) FROM failure), (SELECT count(*) FROM invocation), (SELECT count(*) FROM alias),"
        " (SELECT page_count FROM pragma_page_count()) * (SELECT page_size FROM pragma_page_size())",
    [HONE_SQL_STAT_2] = "SELECT (SELECT count(*) FROM foreign_config), (SELECT count(*) FROM quarantine)",

    [HONE_SQL_CHANGES] = "PRAGMA data_version",

    [HONE_SQL_DECISION_DROP] = "DELETE FROM decision WHERE id = ?1",
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
    // Their call's number is damaged, there or here. No column of its stands beside them, which no checksum agrees
    // with.
    [HONE_SQL_MEASUREMENT_ORPHANS] = MEASUREMENT_ORPHANS(SINCE_5),
    [HONE_SQL_MEASUREMENT_ORPHANS_DROP] = "DELETE FROM measurement" ORPHANED,
    [HONE_SQL_FAILURE_ORPHANS] = FAILURE_ORPHANS(SINCE_3),
    [HONE_SQL_FAILURE_ORPHANS_DROP] = "DELETE FROM failure" ORPHANED,
    [HONE_SQL_CHECK] = "PRAGMA integrity_check(1)",
};

// An older file that cannot be written is read as it is.
static const char *const texts_before_5[HONE_SQL_COUNT] = {
    [HONE_SQL_MEASUREMENT_SCAN] = MEASUREMENT_SCAN(BEFORE_5) ANY_CALLS MEASURED_ORDER,
    [HONE_SQL_MEASUREMENT_SCAN_CALL] = MEASUREMENT_SCAN(BEFORE_5) CALLS MEASURED_ORDER,
    [HONE_SQL_MEASUREMENT_ORPHANS] = MEASUREMENT_ORPHANS(BEFORE_5),
};
static const char *const texts_before_4[HONE_SQL_COUNT] = {
    [HONE_SQL_DECISION_GET] = DECISION_FROM("NULL") " WHERE" CALL_KEY " AND regime = ?5",
    [HONE_SQL_DECISION_SCAN] = DECISION_FROM("NULL") DECISION_FILTER_BEFORE_4 DECISION_ORDER,
    [HONE_SQL_DECISION_SCAN_ANY] = DECISION_FROM("NULL") DECISION_FILTER_BEFORE_4,
};
static const char *const texts_before_3[HONE_SQL_COUNT] = {
    [HONE_SQL_MEASUREMENT_SCAN] = MEASUREMENT_SCAN(BEFORE_3 ", NULL") ANY_CALLS MEASURED_ORDER,
    [HONE_SQL_MEASUREMENT_SCAN_CALL] = MEASUREMENT_SCAN(BEFORE_3 ", NULL") CALLS MEASURED_ORDER,
    [HONE_SQL_FAILURE_SCAN] = FAILURE_SCAN(BEFORE_3) ANY_CALLS MEASURED_ORDER,
    [HONE_SQL_FAILURE_SCAN_CALL] = FAILURE_SCAN(BEFORE_3) CALLS MEASURED_ORDER,
    [HONE_SQL_MEASUREMENT_ORPHANS] = MEASUREMENT_ORPHANS(BEFORE_3 ", NULL"),
    [HONE_SQL_FAILURE_ORPHANS] = FAILURE_ORPHANS(BEFORE_3),
};

const char *hone_sql_text(hone_sql id, int schema)
{
    if (schema > 0 && schema < 3 && texts_before_3[id] != NULL) return texts_before_3[id];
    if (schema > 0 && schema < HONE_SQL_PLACE_SCHEMA && texts_before_4[id] != NULL) return texts_before_4[id];
    if (schema > 0 && schema < 5 && texts_before_5[id] != NULL) return texts_before_5[id];
    return texts[id];
}
