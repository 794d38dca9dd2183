// Whether another file lies under a store's name. Each put asks, and to look a path up takes a tenth of it: so the
// folder is asked whether anything in it changed, and the path is looked up only then.
#include "store/sqlite/connection.h"

#include "os/os.h"

#include <limits.h>

// File systems keep times as coarse as 2 seconds: a folder that has just changed may change again unseen.
static const double settled_seconds = 3;
static const int64_t never_ns = INT64_MIN;

void hone_connection_watch(hone_connection *connection)
{
    char folder[PATH_MAX];
    const char *file = sqlite3_db_filename(connection->db, "main"); // absolute, and without links
    hone_os_folder_close(&connection->folder);
    connection->still_since = never_ns;
    // What another machine changes is seen late there.
    if (file == NULL || hone_os_is_network_file(file) || !hone_os_folder_of(file, folder, sizeof folder)) return;
    connection->folder = hone_os_folder_open(folder);
}

static bool is_long_ago(int64_t time_ns)
{
    return (double)time_ns * 1e-9 + settled_seconds < hone_os_now_utc();
}

bool hone_connection_is_moved(hone_connection *connection)
{
    int64_t changed_ns = never_ns;
    int moved = 0;
    if (connection->is_fixed) return false;
    if (connection->db == NULL) return true;
    const bool is_known = hone_os_folder_changed(connection->folder, &changed_ns);
    if (is_known && changed_ns == connection->still_since) return false;
    // The folder's time was read before the look: what changes behind it has another.
    sqlite3_file_control(connection->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    connection->still_since = is_known && !moved && is_long_ago(changed_ns) ? changed_ns : never_ns;
    return moved != 0;
}
