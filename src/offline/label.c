// Finding labels in megabytes of text: by the rare byte that each has, then by reading around it.
//
// A keyed label has '#', the others ':' inside a mark ("_ops:{", "tokamax:"). memchr finds the next of each, both are
// remembered, and the nearer is read: backwards for the word before it, forwards for name, version and key. A text is
// thus passed over once for each of the two bytes at the speed of memory, and what was refused is not read again but
// from the byte behind its mark. A payload is walked as JSON in whatever escapes the program's string has, without a
// copy.
#include "offline/label.h"

#include "hone/offline.h"

#include <string.h>

enum { KEY_DIGITS = 16, NAME_MAX_SIZE = 256, PAYLOAD_MAX_SIZE = 1 << 20 };

static const char hash_word[] = "ejkernel_ops";
static const char hone_word[] = "hone";
static const char json_mark[] = "_ops:{";
static const char tokamax_mark[] = "tokamax:";

static bool is_lower_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_version(char c)
{
    return is_word(c) || c == '.' || c == '-';
}

// Bytes that end an operation's name or are none of it: a table, since the scan asks for every byte of a label. Names
// outside [A-Za-z0-9_.@-] are ones that ejkernel itself cannot find again.
static const bool ends_name[256] = {
    [0] = true,   [1] = true,    [2] = true,   [3] = true,   [4] = true,   [5] = true,   [6] = true,   [7] = true,
    [8] = true,   [9] = true,    [10] = true,  [11] = true,  [12] = true,  [13] = true,  [14] = true,  [15] = true,
    [16] = true,  [17] = true,   [18] = true,  [19] = true,  [20] = true,  [21] = true,  [22] = true,  [23] = true,
    [24] = true,  [25] = true,   [26] = true,  [27] = true,  [28] = true,  [29] = true,  [30] = true,  [31] = true,
    ['"'] = true, ['\\'] = true, [':'] = true, [';'] = true, ['#'] = true, ['('] = true, [')'] = true, ['{'] = true,
    ['}'] = true, ['<'] = true,  ['>'] = true, [127] = true,
};

static bool is_name(char c)
{
    return !ends_name[(unsigned char)c];
}

// The 16 digits at `at`, with nothing behind them that would make them something longer.
static bool is_key(const char *at, const char *end)
{
    if (end - at < KEY_DIGITS) return false;
    for (int i = 0; i < KEY_DIGITS; i++)
        if (!is_lower_hex(at[i])) return false;
    return at + KEY_DIGITS == end || !is_word(at[KEY_DIGITS]);
}

static bool all(const char *from, const char *to, bool (*test)(char c))
{
    for (const char *c = from; c < to; c++)
        if (!test(*c)) return false;
    return from < to;
}

// Splits "OP@vVERSION" or "OP.vVERSION", at the last of the marks, '@' before '.'.
static bool split_version(hone_view text, hone_view *out_operation, hone_view *out_version)
{
    static const char marks[] = "@.";
    if (text.size < 4) return false;
    for (const char *mark = marks; *mark; mark++) {
        const char *end = text.data + text.size;
        for (const char *at = end - 3; at > text.data; at--) {
            if (at[0] != *mark || at[1] != 'v' || !all(at + 2, end, is_version)) continue;
            *out_operation = (hone_view){text.data, (size_t)(at - text.data)};
            *out_version = (hone_view){at + 2, (size_t)(end - at - 2)};
            return true;
        }
    }
    return false;
}

static hone_view word_before(hone_view text, const char *hash)
{
    const char *start = hash;
    while (start > text.data && hash - start < NAME_MAX_SIZE && is_word(start[-1]))
        start--;
    return (hone_view){start, (size_t)(hash - start)};
}

// A label with a key: WORD#OPERATION(@v|.v)VERSION:KEY.
static bool read_keyed(hone_view text, const char *hash, hone_view word, hone_label *out)
{
    const char *end = text.data + text.size, *colon = hash + 1;
    const char *limit = end - colon > NAME_MAX_SIZE ? colon + NAME_MAX_SIZE : end;
    while (colon < limit && is_name(*colon))
        colon++;
    if (colon == limit || *colon != ':' || !is_key(colon + 1, end)) return false;
    hone_view name = {hash + 1, (size_t)(colon - hash - 1)};
    if (!split_version(name, &out->operation, &out->version)) return false;
    out->kind = hone_view_is(word, hone_word) ? HONE_LABEL_HONE : HONE_LABEL_HASH;
    out->key = (hone_view){colon + 1, KEY_DIGITS};
    out->text = (hone_view){word.data, (size_t)(colon + 1 + KEY_DIGITS - word.data)};
    return true;
}

// A label that XLA cut at its '@': the name ends where the scope's name ends.
static bool read_cut(const hone_label_walk *walk, const char *hash, hone_view word, hone_label *out)
{
    const char *end = walk->text.data + walk->text.size, *at = hash + 1;
    while (at < end && at - hash <= NAME_MAX_SIZE && is_name(*at) && *at != '/' && *at != '@')
        at++;
    // What follows tells a name that was cut from one that is something else: a string's end, a path, a closed scope.
    bool ends = at < end ? *at != '\0' && strchr("\"/;)\\", *at) : walk->closed;
    if (!hone_view_is(word, hash_word) || at == hash + 1 || !ends) return false;
    out->kind = HONE_LABEL_CUT;
    out->operation = (hone_view){hash + 1, (size_t)(at - hash - 1)};
    out->text = (hone_view){word.data, (size_t)(at - word.data)};
    return true;
}

static bool read_hash(const hone_label_walk *walk, const char *hash, hone_label *out)
{
    hone_view word = word_before(walk->text, hash);
    *out = (hone_label){0};
    return word.size > 0 && (read_keyed(walk->text, hash, word, out) || read_cut(walk, hash, word, out));
}

// One JSON character of a payload as it stands in program text: a quote is \22 in MLIR and \" in HLO.
typedef struct payload_step {
    size_t size; // bytes in the text; 0: the program's own string ends here
    bool quote;  // a JSON quote
    bool escape; // a JSON backslash
    bool apart;  // neither of both nor a plain byte
    char plain;
} payload_step;

static payload_step step_escape(const char *at, const char *end)
{
    if (end - at >= 2 && (at[1] == '"' || at[1] == '\\'))
        return (payload_step){.size = 2, .quote = at[1] == '"', .escape = at[1] == '\\'};
    int high = end - at >= 3 ? hone_hex_value(at[1]) : -1, low = high >= 0 ? hone_hex_value(at[2]) : -1;
    if (low < 0) return (payload_step){.size = end - at >= 2 ? 2 : 0, .apart = true};
    int byte = high * 16 + low;
    return (payload_step){
        .size = 3, .quote = byte == '"', .escape = byte == '\\', .apart = byte != '"' && byte != '\\'};
}

// bare: the text is JSON itself, in no string of a program.
static payload_step step(const char *at, const char *end, bool bare)
{
    if (at == end || *at == '\n') return (payload_step){0};
    if (*at == '"') return (payload_step){.size = bare ? 1 : 0, .quote = bare};
    if (*at != '\\') return (payload_step){.size = 1, .plain = *at};
    return bare ? (payload_step){.size = 1, .escape = true} : step_escape(at, end);
}

// A payload as far as it was read.
typedef struct payload_scan {
    const char *at, *end;
    bool bare;
    const char *name;    // of the field that names the operation
    int depth;           // of that field; the outermost is 1
    hone_view operation; // its value. ejkernel's is the last field: behind it, HLO text has cut the rest
    bool cut;
} payload_scan;

// Over bytes that mean nothing to the scan.
static void skip_plain(payload_scan *s)
{
    static const bool means[256] = {['"'] = true, ['\\'] = true, ['\n'] = true, ['{'] = true, ['}'] = true};
    while (s->at < s->end && !means[(unsigned char)*s->at])
        s->at++;
}

// The inside of the JSON string whose first byte is at the scan; the scan moves behind its closing quote.
static hone_view scan_string(payload_scan *s)
{
    const char *start = s->at;
    bool escaped = false;
    for (;;) {
        if (!escaped) skip_plain(s);
        payload_step next = step(s->at, s->end, s->bare);
        const char *stop = s->at;
        s->at += next.size;
        if (next.size == 0 || (next.quote && !escaped)) return (hone_view){start, (size_t)(stop - start)};
        escaped = next.escape && !escaped;
    }
}

// The operation's name: up to its closing quote, or where the name of the scope ends that it was cut in.
static void scan_operation(payload_scan *s)
{
    const char *start = s->at;
    payload_step next;
    while ((next = step(s->at, s->end, s->bare)).size > 0 && !next.quote &&
           !strchr("/;)", next.plain ? next.plain : ' '))
        s->at += next.size;
    s->operation = (hone_view){start, (size_t)(s->at - start)};
    s->cut = !next.quote;
    s->at += next.quote ? next.size : 0;
}

static bool scan_value_follows(payload_scan *s)
{
    if (s->at == s->end || *s->at != ':') return false;
    const char *at = s->at + 1;
    while (at < s->end && *at == ' ')
        at++;
    payload_step quote = step(at, s->end, s->bare);
    if (quote.quote) s->at = at + quote.size;
    return quote.quote;
}

// Reads a payload from its '{': up to its '}', to where it was cut, or to where the program's string ends.
static void scan_payload(payload_scan *s)
{
    int depth = 0;
    for (;;) {
        skip_plain(s);
        payload_step next = step(s->at, s->end, s->bare);
        if (next.size == 0) return;
        s->at += next.size;
        if (next.plain == '{') depth++;
        if (next.plain == '}' && --depth == 0) return;
        if (!next.quote) continue;
        bool names = hone_view_is(scan_string(s), s->name) && depth == s->depth && s->operation.size == 0;
        if (names && scan_value_follows(s)) scan_operation(s);
        if (s->cut) return;
    }
}

static payload_scan payload_scan_of(hone_view text, const char *brace)
{
    const char *end = text.data + text.size;
    if (end - brace > PAYLOAD_MAX_SIZE) end = brace + PAYLOAD_MAX_SIZE;
    return (payload_scan){.at = brace, .end = end, .bare = end - brace > 1 && brace[1] == '"'};
}

static bool read_json(hone_view text, const char *mark, hone_label *out)
{
    *out = (hone_label){.kind = HONE_LABEL_JSON};
    const char *brace = mark + sizeof json_mark - 2;
    hone_view word = word_before(text, brace - 1);
    payload_scan s = payload_scan_of(text, brace);
    s.name = "op_id";
    s.depth = 1;
    scan_payload(&s);
    out->payload = (hone_view){brace, (size_t)(s.at - brace)};
    out->text = (hone_view){word.data, (size_t)(s.at - word.data)};
    if (!split_version(s.operation, &out->operation, &out->version)) out->operation = s.operation;
    return s.operation.size > 0;
}

// What stands behind the last dot: a class without its module.
static hone_view last_part(hone_view name)
{
    const char *start = name.data + name.size;
    while (start > name.data && start[-1] != '.')
        start--;
    return (hone_view){start, (size_t)(name.data + name.size - start)};
}

// True when the payload is there as a whole: its last brace was read.
static bool is_whole(const payload_scan *s, const char *brace)
{
    return s->at > brace && s->at[-1] == '}' && !s->cut;
}

static bool read_tokamax(hone_view text, const char *mark, hone_label *out)
{
    *out = (hone_label){.kind = HONE_LABEL_TOKAMAX, .text = {mark, sizeof tokamax_mark - 1}};
    const char *at = mark + sizeof tokamax_mark - 1, *end = text.data + text.size, *name = at;
    while (at < end && at - name < NAME_MAX_SIZE && (is_word(*at) || *at == '.'))
        at++;
    hone_view class = {name, (size_t)(at - name)};
    bool first = class.size > 0; // the first generation names the class in front of the arguments
    if (first && (at == end || *at++ != '(')) return false;
    if (at == end || *at != '{') return false;
    payload_scan s = payload_scan_of(text, at);
    s.name = first ? "" : "__type";
    s.depth = 2;
    scan_payload(&s);
    out->payload = (hone_view){at, (size_t)(s.at - at)};
    out->text = (hone_view){mark, (size_t)(s.at - mark)};
    hone_view name_of_class = first ? class : s.operation;
    if (!is_whole(&s, at) || name_of_class.size == 0) return false;
    out->operation = last_part(name_of_class);
    return out->operation.size > 0;
}

static const char *find_byte(const char *from, const char *end, char byte)
{
    const char *found = from < end ? memchr(from, byte, (size_t)(end - from)) : NULL;
    return found != NULL ? found : end;
}

// True when a mark stands around a colon, and nothing of it before `from`.
static bool stands_around(const char *from, const char *end, const char *colon, const char *mark, size_t before)
{
    size_t size = strlen(mark);
    return (size_t)(colon - from) >= before && (size_t)(end - colon) >= size - before &&
           memcmp(colon - before, mark, size) == 0;
}

// The next mark that has a colon, of which most texts have few: that of a JSON stamp, or tokamax's.
static const char *find_colon_mark(const char *from, const char *end, bool *out_json)
{
    for (const char *colon = find_byte(from, end, ':'); colon < end; colon = find_byte(colon + 1, end, ':')) {
        *out_json = stands_around(from, end, colon, json_mark, sizeof json_mark - 3);
        if (*out_json) return colon - (sizeof json_mark - 3);
        size_t before = sizeof tokamax_mark - 2;
        if (stands_around(from, end, colon, tokamax_mark, before)) return colon - before;
    }
    return end;
}

hone_label_walk hone_label_walk_of(hone_view text)
{
    return (hone_label_walk){.text = text, .at = text.data};
}

bool hone_label_next(hone_label_walk *walk, hone_label *out)
{
    if (walk->text.size == 0) return false;
    const char *end = walk->text.data + walk->text.size;
    while (walk->at < end) {
        if (walk->hash == NULL || walk->hash < walk->at) walk->hash = find_byte(walk->at, end, '#');
        if (walk->colon == NULL || walk->colon < walk->at) walk->colon = find_colon_mark(walk->at, end, &walk->json);
        bool hash = walk->hash < walk->colon;
        const char *mark = hash ? walk->hash : walk->colon;
        if (mark == end) break;
        bool found = hash         ? read_hash(walk, mark, out)
                     : walk->json ? read_json(walk->text, mark, out)
                                  : read_tokamax(walk->text, mark, out);
        // A payload that turned out to be none is not searched again from within.
        walk->at = found || !hash ? out->text.data + out->text.size : mark + 1;
        if (found) return true;
    }
    walk->at = end;
    return false;
}

size_t hone_labels_scan(
    const char *text, size_t size, void (*visit)(void *ctx, const char *label, size_t label_size), void *ctx)
{
    hone_label_walk walk = hone_label_walk_of((hone_view){text, size});
    hone_label label;
    size_t count = 0;
    for (; size > 0 && hone_label_next(&walk, &label); count++)
        if (visit != NULL) visit(ctx, label.text.data, label.text.size);
    return count;
}

// Closes what a cut payload left open: the string of op_id and the outermost object.
static void complete(char *json, size_t size)
{
    bool in_string = false;
    int depth = 0;
    for (size_t i = 0; i < size; i++) {
        if (in_string && json[i] == '\\')
            i++;
        else if (json[i] == '"')
            in_string = !in_string;
        else if (!in_string)
            depth += json[i] == '{' ? 1 : json[i] == '}' ? -1 : 0;
    }
    if (in_string) json[size++] = '"';
    if (depth == 1) json[size++] = '}';
    json[size] = '\0';
}

char *hone_label_json(hone_arena *arena, const hone_label *label)
{
    hone_view payload = label->payload;
    char *json = hone_arena_alloc(arena, payload.size + 3);
    if (json == NULL) return NULL;
    bool bare = payload.size > 1 && payload.data[1] == '"',
         mlir = payload.size > 3 && memcmp(payload.data + 1, "\\22", 3) == 0;
    size_t size = payload.size;
    const char *from = payload.data;
    if (!bare) from = mlir ? hone_unescape_mlir(arena, payload, &size) : hone_unescape_hlo(arena, payload, &size);
    if (from == NULL) return NULL;
    memcpy(json, from, size);
    complete(json, size);
    return json;
}
