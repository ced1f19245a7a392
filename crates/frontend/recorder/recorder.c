/* Records compilers, archivers and linkers as they start, for `caulk capture`.
 *
 * Preloaded into every process of a build. Before the program's own code runs, its name is looked at; if it is that
 * of a tool of interest, its folder, its arguments and the response files they name are appended to the log as one line,
 * in one write, so that lines of processes that run at once never mix. Nothing else of the process is touched.
 *
 *   d<folder>\x1f a<argument>\x1f f<contents of the response file just named>\x1f … .\n      (without the blanks)
 *
 * A backslash, a newline and \x1f inside a field are written `\\`, `\n` and `\s`.
 *
 * What a recorded tool starts (the preprocessor, the linker, the compiler behind ccache) is not recorded again: the
 * tool marks its environment.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG "CAULK_CAPTURE_LOG"
#define INSIDE "CAULK_CAPTURE_INSIDE"
#define SELF_TEST "CAULK_CAPTURE_SELF_TEST"

enum { LONGEST_FOLDER = 1 << 16, LARGEST_RESPONSE = 1 << 26 };

struct line {
	char *text;
	size_t length, room;
	int failed;
};

static void put(struct line *line, char c)
{
	if (line->length == line->room) {
		size_t room = line->room ? 2 * line->room : 4096;
		char *text = line->failed ? NULL : realloc(line->text, room);
		if (!text) {
			line->failed = 1;
			return;
		}
		line->text = text;
		line->room = room;
	}
	line->text[line->length++] = c;
}

static void put_field(struct line *line, char tag, const char *bytes, size_t length)
{
	put(line, tag);
	for (size_t i = 0; i < length; i++) {
		char c = bytes[i];
		if (c == '\\' || c == '\n' || c == '\x1f') {
			put(line, '\\');
			c = c == '\n' ? 'n' : c == '\x1f' ? 's' : c;
		}
		put(line, c);
	}
	put(line, '\x1f');
}

static void put_response(struct line *line, const char *path)
{
	struct stat data;
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return;
	if (fstat(file, &data) == 0 && S_ISREG(data.st_mode) && data.st_size > 0 && data.st_size < LARGEST_RESPONSE) {
		char *text = malloc((size_t)data.st_size);
		ssize_t got = text ? read(file, text, (size_t)data.st_size) : -1;
		if (got > 0)
			put_field(line, 'f', text, (size_t)got);
		free(text);
	}
	close(file);
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* `gcc` of `gcc`, `gcc-12`, `arm-none-eabi-gcc` and `arm-none-eabi-gcc-12.2`. */
static int is_one_of(const char *name, const char *const *tools)
{
	size_t length = strlen(name);
	size_t end = length;
	while (end > 0 && strchr("0123456789.", name[end - 1]))
		end--;
	if (end > 0 && end < length && name[end - 1] == '-')
		length = end - 1;
	for (; *tools; tools++) {
		size_t part = strlen(*tools);
		if (part <= length && memcmp(name + length - part, *tools, part) == 0
		    && (part == length || name[length - part - 1] == '-'))
			return 1;
	}
	return 0;
}

/* These run others of interest, and what they start is their own business. */
static const char *const drivers[] = { "cc", "gcc", "clang", "c++", "g++", "clang++", "c89", "c99", "c11", "icc", "icx",
	"tcc", "ccache", "sccache", "distcc", "icecc", "buildcache", NULL };

static const char *const others[] = { "ar", "ld", "ld.bfd", "ld.gold", "ld.lld", "ld.mold", "gold", "lld", "mold", NULL };

static void record(const char *log, int count, char **arguments)
{
	struct line line = { 0 };
	char *folder = malloc(LONGEST_FOLDER);
	if (folder && getcwd(folder, LONGEST_FOLDER)) {
		put(&line, '\n'); /* ends what a full disk or a kill may have cut off */
		put_field(&line, 'd', folder, strlen(folder));
		for (int i = 0; i < count; i++) {
			put_field(&line, 'a', arguments[i], strlen(arguments[i]));
			if (i > 0 && arguments[i][0] == '@')
				put_response(&line, arguments[i] + 1);
		}
		put(&line, '.');
		put(&line, '\n');
		int file = line.failed ? -1 : open(log, O_WRONLY | O_APPEND | O_CLOEXEC);
		if (file >= 0) {
			ssize_t written = write(file, line.text, line.length);
			(void)written; /* a full disk must not disturb the build */
			close(file);
		}
	}
	free(folder);
	free(line.text);
}

__attribute__((constructor)) static void started(int count, char **arguments, char **environment)
{
	(void)environment;
	const char *log = getenv(LOG);
	if (!log || count < 1 || !arguments || !arguments[0])
		return;
	int error = errno;
	const char *name = last_part(arguments[0]);
	if (getenv(SELF_TEST)) {
		record(log, count, arguments);
	} else if (!getenv(INSIDE)) {
		int driver = is_one_of(name, drivers);
		if (driver || is_one_of(name, others))
			record(log, count, arguments);
		if (driver)
			setenv(INSIDE, "1", 1);
	}
	errno = error;
}
