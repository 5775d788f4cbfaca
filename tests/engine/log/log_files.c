/* Tests of engine/log/files.c, directory.c and the log over them, on real files in a directory of their own: what is written is there again, names of
 * calls and files in messages, locks between processes, processes that are killed, and a checkpoint written by one thread while another appends. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocator.h"
#include "directory.h"
#include "log.h"

typedef struct place {
    char root[64], path[96];
    test_allocator allocator;
    ivm__memory memory;
    ivm_error error;
} place;

static void place_init(place *at)
{
    snprintf(at->root, sizeof at->root, "/tmp/ivm_log_XXXXXX");
    cr_assert_not_null(mkdtemp(at->root));
    snprintf(at->path, sizeof at->path, "%s/d", at->root);
    test_allocator_init(&at->allocator);
    ivm_allocator functions = test_allocator_functions(&at->allocator);
    ivm__memory_init(&at->memory, &functions);
    at->error = (ivm_error)IVM_ERROR_INIT;
}

static void place_deinit(place *at)
{
    DIR *listing = opendir(at->path);
    char path[400];
    for (struct dirent *entry; listing && (entry = readdir(listing));) {
        snprintf(path, sizeof path, "%s/%s", at->path, entry->d_name);
        unlink(path);
    }
    if (listing) {
        closedir(listing);
    }
    rmdir(at->path);
    cr_assert_eq(rmdir(at->root), 0);
    cr_assert(test_allocator_is_clean(&at->allocator));
}

/* *count: records, each its own number and its size of bytes. */
static ivm_status opened(place *at, uint64_t segment_bytes, ivm__log **log, uint64_t *count)
{
    ivm__log_options options = { .segment_bytes = segment_bytes };
    IVM_TRY(ivm__log_open(at->path, &options, &at->memory, log, &at->error));
    *count = ivm__log_recovery_of(*log)->checkpoint;
    for (;;) {
        ivm__feed *feed;
        uint8_t kind;
        uint64_t number, bytes[32];
        ivm_status status = ivm__log_record_read(*log, &kind, &feed, &at->error);
        if (status != IVM_OK) {
            ivm__log_close(*log);
            return status;
        }
        if (!feed) {
            return IVM_OK;
        }
        cr_assert_eq(feed->read(feed, &number, sizeof number), IVM_OK);
        cr_assert_eq(number, *count);
        cr_assert_eq(feed->read(feed, bytes, number % 32 * 8), IVM_OK);
        for (uint64_t i = 0; i < number % 32; i++) {
            cr_assert_eq(bytes[i], number * i);
        }
        (*count)++;
    }
}

static ivm_status append(ivm__log *log, uint64_t number, ivm_error *error)
{
    ivm__sink *sink;
    uint64_t bytes[33] = { number };
    for (uint64_t i = 0; i < number % 32; i++) {
        bytes[i + 1] = number * i;
    }
    IVM_TRY(ivm__log_append_begin(log, 1, &sink, error));
    IVM_TRY(sink->write(sink, bytes, (1 + number % 32) * 8));
    return ivm__log_append_end(log, error);
}

Test(engine_log_files, what_is_written_is_there_again)
{
    place at;
    ivm__log *log;
    uint64_t count = 0, written = 0;
    place_init(&at);
    for (uint32_t round = 0; round < 5; round++) {
        cr_assert_eq(opened(&at, 4000, &log, &count), IVM_OK, "%s", at.error.message);
        cr_assert_eq(count, written);
        cr_assert_eq(ivm__log_recovery_of(log)->created, round == 0);
        for (uint32_t i = 0; i < 100; i++) {
            cr_assert_eq(append(log, written++, &at.error), IVM_OK);
            if (i % 7 == 0) {
                cr_assert_eq(ivm__log_sync(log, &at.error), IVM_OK);
            }
        }
        ivm__sink *sink;
        cr_assert(round == 1 || ivm__log_checkpoint_begin(log, &sink, &at.error) == IVM_OK);
        cr_assert(round == 1 || sink->write(sink, "state", 5) == IVM_OK);
        cr_assert(round % 2 == 1 || ivm__log_checkpoint_end(log, &at.error) == IVM_OK);
        ivm__log_close(log);
    }
    place_deinit(&at);
}

static void byte_flip(const place *at, const char *name, off_t byte)
{
    char path[160];
    uint8_t found;
    snprintf(path, sizeof path, "%s/%s", at->path, name);
    int file = open(path, O_RDWR);
    cr_assert(file >= 0);
    cr_assert_eq(pread(file, &found, 1, byte), 1);
    found ^= 4;
    cr_assert_eq(pwrite(file, &found, 1, byte), 1);
    close(file);
}

Test(engine_log_files, damage_is_named_by_file_and_byte)
{
    place at;
    ivm__log *log;
    uint64_t count;
    char wanted[200];
    place_init(&at);
    cr_assert_eq(opened(&at, 0, &log, &count), IVM_OK);
    for (uint64_t i = 0; i < 10; i++) {
        cr_assert_eq(append(log, i, &at.error), IVM_OK);
        cr_assert_eq(ivm__log_sync(log, &at.error), IVM_OK);
    }
    ivm__log_close(log);
    byte_flip(&at, "log-0000000000000000", 100); /* in the second record */
    cr_assert_eq(opened(&at, 0, &log, &count), IVM_CORRUPT);
    snprintf(wanted, sizeof wanted, "log-0000000000000000: byte 96: a fragment's head is not what was written, in %s", at.path);
    cr_assert_str_eq(at.error.message, wanted);
    byte_flip(&at, "log-0000000000000000", 100);
    cr_assert_eq(opened(&at, 0, &log, &count), IVM_OK);
    cr_assert_eq(count, 10);
    ivm__log_close(log);
    place_deinit(&at);
}

Test(engine_log_files, failures_name_call_and_file)
{
    place at;
    ivm__log *log = NULL;
    uint64_t count;
    char message[200];
    place_init(&at);
    snprintf(at.path, sizeof at.path, "%s/none/d", at.root);
    cr_assert_eq(opened(&at, 0, &log, &count), IVM_IO);
    snprintf(message, sizeof message, "%s: mkdir: No such file or directory", at.path);
    cr_assert_str_eq(at.error.message, message);
    snprintf(at.path, sizeof at.path, "%s/d", at.root);
    close(open(at.path, O_CREAT | O_RDWR, 0600));
    cr_assert_eq(opened(&at, 0, &log, &count), IVM_IO);
    snprintf(message, sizeof message, "%s: open: Not a directory", at.path);
    cr_assert_str_eq(at.error.message, message);
    unlink(at.path);
    place_deinit(&at);
}

/* A file may not grow past the limit of a process: as good as a disk that is full. */
Test(engine_log_files, a_full_disk_takes_a_record_back_and_goes_on)
{
    place at;
    ivm__log *log;
    uint64_t count, written = 0;
    struct rlimit before, limit;
    place_init(&at);
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(opened(&at, 1 << 20, &log, &count), IVM_OK);
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){ 5000, before.rlim_max };
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ivm_status status = IVM_OK;
    while ((status = append(log, written, &at.error)) == IVM_OK) {
        written++;
    }
    cr_assert_eq(status, IVM_IO);
    cr_assert_not_null(strstr(at.error.message, "log-0000000000000000: write: File too large"), "%s", at.error.message);
    cr_assert_not(ivm__log_broken(log));
    cr_assert_eq(ivm__log_state_of(log).sequence, written);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    cr_assert_eq(append(log, written++, &at.error), IVM_OK);
    ivm__log_close(log);
    cr_assert_eq(opened(&at, 0, &log, &count), IVM_OK);
    cr_assert_eq(count, written);
    ivm__log_close(log);
    place_deinit(&at);
}

/* Appends until it is killed; says through the pipe what is on the disk. */
static void child_work(place *at, int pipe_end, uint32_t round)
{
    ivm__log *log;
    uint64_t count;
    if (opened(at, 20000, &log, &count) != IVM_OK) {
        _exit(1);
    }
    for (;; count++) {
        ivm__sink *sink;
        bool syncs = count % (1 + round % 5) == 0;
        if (append(log, count, &at->error) != IVM_OK || (syncs && ivm__log_sync(log, &at->error) != IVM_OK)) {
            _exit(2);
        }
        uint64_t synced = ivm__log_state_of(log).synced;
        if (write(pipe_end, &synced, sizeof synced) != sizeof synced) {
            _exit(3);
        }
        if (count % 50 == 49 &&
            (ivm__log_checkpoint_begin(log, &sink, &at->error) != IVM_OK || ivm__log_checkpoint_end(log, &at->error) != IVM_OK)) {
            _exit(4);
        }
    }
}

Test(engine_log_files, processes_that_are_killed_lose_nothing_that_was_said)
{
    place at;
    place_init(&at);
    for (uint32_t round = 0; round < 30; round++) {
        int ends[2];
        ivm__log *log;
        uint64_t synced = 0, heard, count, wanted = (uint64_t)rand() % 120 + 1;
        cr_assert_eq(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            child_work(&at, ends[1], round);
        }
        close(ends[1]);
        for (uint64_t i = 0; i < wanted && read(ends[0], &heard, sizeof heard) == sizeof heard; i++) {
            synced = heard;
        }
        if (round % 4 == 0) {
            cr_assert_eq(opened(&at, 0, &log, &count), IVM_IN_USE); /* the child's */
        }
        kill(child, SIGKILL);
        int status;
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFSIGNALED(status), "the child gave up: %d", WEXITSTATUS(status));
        while (read(ends[0], &heard, sizeof heard) == sizeof heard) {
            synced = heard;
        }
        close(ends[0]);
        cr_assert_eq(opened(&at, 20000, &log, &count), IVM_OK, "%s", at.error.message);
        cr_assert_geq(count, synced);
        ivm__log_close(log);
    }
    place_deinit(&at);
}

/* The lock is given back though a child that was forked still has its handle. */
Test(engine_log_files, a_child_does_not_keep_the_lock)
{
    place at;
    ivm__log *log;
    uint64_t count;
    place_init(&at);
    cr_assert_eq(opened(&at, 0, &log, &count), IVM_OK);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        pause();
        _exit(0);
    }
    ivm__log_close(log);
    cr_assert_eq(opened(&at, 0, &log, &count), IVM_OK);
    ivm__log_close(log);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    place_deinit(&at);
}

static void *checkpoints_end(void *argument)
{
    ivm__log *log = argument;
    ivm_error error = IVM_ERROR_INIT;
    return ivm__log_checkpoint_end(log, &error) == IVM_OK ? log : NULL;
}

Test(engine_log_files, a_checkpoint_is_ended_while_records_are_appended)
{
    place at;
    ivm__log *log;
    uint64_t count, written = 0;
    place_init(&at);
    cr_assert_eq(opened(&at, 3000, &log, &count), IVM_OK);
    for (uint32_t round = 0; round < 20; round++) {
        ivm__sink *sink;
        pthread_t thread;
        void *ended;
        cr_assert_eq(ivm__log_checkpoint_begin(log, &sink, &at.error), IVM_OK);
        cr_assert_eq(pthread_create(&thread, NULL, checkpoints_end, log), 0);
        for (uint32_t i = 0; i < 40; i++) {
            cr_assert_eq(append(log, written++, &at.error), IVM_OK);
            cr_assert(i % 4 || ivm__log_sync(log, &at.error) == IVM_OK);
        }
        cr_assert_eq(pthread_join(thread, &ended), 0);
        cr_assert_eq(ended, log);
        cr_assert_eq(ivm__log_state_of(log).checkpoint, written - 40);
    }
    ivm__log_close(log);
    cr_assert_eq(opened(&at, 3000, &log, &count), IVM_OK);
    cr_assert_eq(count, written);
    cr_assert_eq(ivm__log_recovery_of(log)->checkpoint, written - 40);
    ivm__log_close(log);
    place_deinit(&at);
}

static void file_put(const place *at, const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", at->path, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fclose(file);
}

static bool file_take(const place *at, const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", at->path, name);
    return unlink(path) == 0;
}

Test(engine_log_files, no_log_is_begun_among_the_files_of_others)
{
    place at;
    ivm__log *log = NULL;
    uint64_t count;
    place_init(&at);
    cr_assert_eq(mkdir(at.path, 0700), 0);
    file_put(&at, "thesis.tex");
    file_put(&at, "log-0000000000000000.bak");
    cr_assert_eq(opened(&at, 0, &log, &count), IVM_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(at.error.message, "log-0000000000000000.bak is in "), "%s", at.error.message);
    cr_assert_not_null(strstr(at.error.message, at.path), "%s", at.error.message);
    cr_assert_null(log);
    cr_assert(file_take(&at, "log-0000000000000000.bak"));
    cr_assert_not(file_take(&at, "lock"), "nothing is left there");
    file_put(&at, "lock");
    cr_assert_eq(opened(&at, 0, &log, &count), IVM_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(at.error.message, "thesis.tex is in "), "%s", at.error.message);
    cr_assert(file_take(&at, "lock"), "it was there before");
    cr_assert(file_take(&at, "thesis.tex"));
    cr_assert_eq(rmdir(at.path), 0, "nothing else is");
    cr_assert_eq(mkdir(at.path, 0700), 0);
    file_put(&at, "lost+found");
    cr_assert_eq(opened(&at, 0, &log, &count), IVM_OK, "%s", at.error.message);
    ivm__log_close(log);
    cr_assert(file_take(&at, "lost+found"));
    place_deinit(&at);
}

Test(engine_log_files, a_first_opening_that_was_cut_short_is_begun_again)
{
    place at;
    ivm__log *log = NULL;
    uint64_t count;
    place_init(&at);
    cr_assert_eq(mkdir(at.path, 0700), 0);
    file_put(&at, "lock");
    file_put(&at, "log-0000000000000000");
    file_put(&at, "log-0000000000000000.new");
    file_put(&at, "checkpoint-0000000000000000.new");
    cr_assert_eq(opened(&at, 0, &log, &count), IVM_OK, "%s", at.error.message);
    cr_assert_eq(append(log, 0, &at.error), IVM_OK);
    ivm__log_close(log);
    file_put(&at, "remarks.txt");
    cr_assert_eq(opened(&at, 0, &log, &count), IVM_OK, "what lies beside a log is left alone");
    cr_assert_eq(count, 1);
    ivm__log_close(log);
    cr_assert(file_take(&at, "remarks.txt"));
    place_deinit(&at);
}

Test(engine_log_files, names)
{
    static const char *const wrong[] = { "",
                                         "lock",
                                         "log-",
                                         "log-000000000000000",
                                         "log-00000000000000000",
                                         "log-000000000000000G",
                                         "log-0000000000000000.ne",
                                         "checkpoint-0000000000000000.newer",
                                         "Log-0000000000000000" };
    ivm__file_kind kind;
    uint64_t sequence;
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_assert_not(ivm__file_name_parse(wrong[i], &kind, &sequence), "%s", wrong[i]);
    }
    for (int k = IVM__FILE_CHECKPOINT; k <= IVM__FILE_SEGMENT_NEW; k++) {
        for (uint32_t bit = 0; bit < 64; bit++) {
            ivm__file_name name = ivm__file_name_of((ivm__file_kind)k, UINT64_MAX >> bit);
            cr_assert(ivm__file_name_parse(name.text, &kind, &sequence), "%s", name.text);
            cr_assert(kind == (ivm__file_kind)k && sequence == UINT64_MAX >> bit);
        }
    }
}
