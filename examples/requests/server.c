// A server that answers requests on a socket and loses memory with some of them.
//
// A request is a line `key=value;key=value`. The fields go into a list that belongs to the request; a request with a field
// that the server does not know is refused, and what was read of it so far is lost.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct field {
    char *key, *value;
};

struct request {
    struct field fields[4];
    int count;
};

static int known(const char *key) { return !strcmp(key, "user") || !strcmp(key, "path"); }

static char *copy(const char *from, size_t length) {
    char *to = malloc(length + 1);
    if (!to)
        abort();
    memcpy(to, from, length);
    to[length] = 0;
    return to;
}

// Takes over key and value, unless there is no room or no such key.
static int add(struct request *request, char *key, char *value) {
    if (request->count == 4 || !known(key))
        return -1;
    request->fields[request->count].key = key;
    request->fields[request->count].value = value;
    request->count++;
    return 0;
}

static struct request *parse(const char *line) {
    struct request *request = calloc(1, sizeof *request);
    if (!request)
        abort();
    while (*line) {
        size_t length = strcspn(line, ";");
        const char *equals = memchr(line, '=', length);
        if (equals) {
            char *key = copy(line, (size_t)(equals - line));
            char *value = copy(equals + 1, length - (size_t)(equals + 1 - line));
            if (add(request, key, value) < 0)
                fprintf(stderr, "refused\n"); // and key and value are lost
        }
        line += length + (line[length] == ';');
    }
    return request;
}

static void release(struct request *request) {
    for (int i = 0; i < request->count; i++) {
        free(request->fields[i].key);
        free(request->fields[i].value);
    }
    free(request);
}

static void answer(int client, const char *line) {
    struct request *request = parse(line);
    char text[64];
    int length = snprintf(text, sizeof text, "%d fields\n", request->count);
    if (write(client, text, (size_t)length) != length)
        exit(1);
    release(request);
}

int main(int argc, char **argv) {
    int seconds = argc > 1 ? atoi(argv[1]) : 5;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return 1;
    // The client: every fourth request is a bad one, with a kilobyte in it.
    char bad[1200], reply[64];
    memset(bad, 'x', sizeof bad);
    memcpy(bad, "user=a;token=", 13);
    bad[sizeof bad - 1] = 0;
    for (int tick = 0; tick < seconds * 100; tick++) {
        for (int i = 0; i < 40; i++) {
            answer(ends[0], i % 4 ? "user=a;path=/index" : bad);
            if (read(ends[1], reply, sizeof reply) <= 0)
                return 1;
        }
        usleep(10000);
    }
    return 0;
}
