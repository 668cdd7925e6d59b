// Threads that wait for work: a moment awake, for a step has its next kernel soon, and to wake a thread takes longer
// than many kernels do; then parked on a condition. They die with the process.
#include "native.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

static atomic_int wanted = 1;  // how many threads work, with the caller's own

// Held by who shares work out. Who finds it held works alone: so nobody waits for a worker who waits, and work that
// shares out in turn needs no care.
static pthread_mutex_t sharing = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // of what follows
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER, finished = PTHREAD_COND_INITIALIZER;
static int started;                // threads there are
static atomic_int seats, working;  // how many more the work takes; how many are at it: changed with the lock held
enum { RANGES = 64 };

// Each worker has a range of the blocks that it begins with, the same ones in the next kernel: what it has made it
// finds in its cache. Then it takes what is left of the others' ranges.
static struct {
    Work work;
    void *context;
    Py_ssize_t blocks;
    int ranges;
    struct {
        _Alignas(64) atomic_ptrdiff_t next;
    } range[RANGES];
} job;

static Py_ssize_t begin_of(int range) { return job.blocks * range / job.ranges; }

enum { MOMENT = 300000 };  // nanoseconds: what Python does between two kernels of a step mostly takes less

enum { LITTLE = 1 << 13 };  // elements that are not worth another thread

static bool awaits(const atomic_int *what, bool some) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        for (int i = 0; i < 32; i++) {
            if ((*what != 0) == some) return true;
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
        sched_yield();  // to others, such as a data loader's workers
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < MOMENT);
    return false;
}

int tt_threads(void) { return wanted; }
void tt_set_threads(int count) { wanted = count; }

static void take_blocks(int worker) {
    for (int k = 0; k < job.ranges; k++) {
        int range = (worker + k) % job.ranges;
        for (Py_ssize_t block; (block = job.range[range].next++) < begin_of(range + 1);)
            job.work(job.context, block, worker);
    }
}

static void *run(void *unused) {
    (void)unused;
    for (;;) {
        awaits(&seats, true);
        pthread_mutex_lock(&lock);
        if (!seats) pthread_cond_wait(&wake, &lock);
        if (seats) {
            int worker = seats--;
            working++;
            pthread_mutex_unlock(&lock);
            take_blocks(worker);
            pthread_mutex_lock(&lock);
            if (!--working) pthread_cond_signal(&finished);
        }
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

// Called with the lock held.
static void start(int count) {
    sigset_t every, before;  // signals are for the threads of Python
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    for (pthread_t thread; started < count && !pthread_create(&thread, NULL, run, NULL); started++) {
        pthread_detach(thread);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void share(Work work, void *context, Py_ssize_t blocks, int threads) {
    if (blocks < threads) threads = (int)blocks;
    if (threads < 2 || pthread_mutex_trylock(&sharing)) {
        for (Py_ssize_t block = 0; block < blocks; block++) work(context, block, 0);
        return;
    }
    pthread_mutex_lock(&lock);
    start(threads - 1);
    job.work = work;
    job.context = context;
    job.blocks = blocks;
    job.ranges = threads < RANGES ? threads : RANGES;
    for (int range = 0; range < job.ranges; range++) job.range[range].next = begin_of(range);
    seats = threads - 1 < started ? threads - 1 : started;
    pthread_cond_broadcast(&wake);
    pthread_mutex_unlock(&lock);
    take_blocks(0);
    pthread_mutex_lock(&lock);
    seats = 0;
    pthread_mutex_unlock(&lock);
    awaits(&working, false);
    pthread_mutex_lock(&lock);
    while (working) pthread_cond_wait(&finished, &lock);
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&sharing);
}

void tt_share(Work work, void *context, Py_ssize_t blocks, int64_t elements, int threads) {
    if (elements < LITTLE) {
        share(work, context, blocks, 1);
        return;
    }
    PyThreadState *state = PyEval_SaveThread();
    share(work, context, blocks, threads);
    PyEval_RestoreThread(state);
}

void tt_share_unlocked(Work work, void *context, Py_ssize_t blocks, int64_t elements, int threads) {
    share(work, context, blocks, elements < LITTLE ? 1 : threads);
}

// A forked process has none of the threads, and may have been made while others held the locks.
static void forget(void) {
    pthread_mutex_init(&sharing, NULL);
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&wake, NULL);
    pthread_cond_init(&finished, NULL);
    started = seats = working = 0;
}

void tt_begin_threads(void) { pthread_atfork(NULL, NULL, forget); }
