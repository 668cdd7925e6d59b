// The thread pool. Workers that run out of work spin for a moment, because a training step soon has its next kernel and
// waking a thread takes longer than many kernels do; then they sleep on a condition variable. They end with the
// process.
#include "native.h"

#ifdef __wasm__  // a browser's Python has no threads

int tt_threads(void) { return 1; }
void tt_set_threads(int count) { (void)count; }
void tt_install_fork_handler(void) {}

void tt_parallel_for(Work work, void *context, Py_ssize_t parts, int64_t elements, int threads) {
    tt_parallel_for_unlocked(work, context, parts, elements, threads);
}

void tt_parallel_for_unlocked(Work work, void *context, Py_ssize_t parts, int64_t elements, int threads) {
    (void)elements, (void)threads;
    for (Py_ssize_t part = 0; part < parts; part++) work(context, part, 0);
}

#else

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

enum {
    MAX_RANGES = 64,
    SPIN_NANOSECONDS = 300000,  // the time Python mostly takes between two kernels of a step
    MIN_ELEMENTS = 1 << 13,     // work of fewer elements is not worth a second thread
};

static atomic_int threads_wanted = 1;  // with the calling thread

// Held by the caller whose loop the pool runs. A caller that cannot take it runs its loop alone: so no worker ever
// waits for another one, and nested parallel loops need no special care.
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER;  // protects the variables below
static pthread_cond_t work_available = PTHREAD_COND_INITIALIZER, work_finished = PTHREAD_COND_INITIALIZER;
static int started;  // threads that exist
// Workers that the loop still accepts, and workers that are running parts of it. Changed with `state_lock` held, but
// read without it by spinning threads.
static atomic_int vacancies, running;

// Each worker has a range of the parts that it begins with, the same range in the next kernel, whose input is then
// likely in its cache. When the range is done, the worker steals from the other ranges.
static struct {
    Work work;
    void *context;
    Py_ssize_t parts;
    int ranges;
    struct {
        _Alignas(64) atomic_ptrdiff_t next;
    } range[MAX_RANGES];
} loop;

static Py_ssize_t begin_of(int range) { return loop.parts * range / loop.ranges; }

// Spin until `counter` is nonzero (or zero); false after SPIN_NANOSECONDS.
static bool spin_until(const atomic_int *counter, bool nonzero) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        for (int i = 0; i < 32; i++) {
            if ((*counter != 0) == nonzero) return true;
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
        sched_yield();  // to other processes, such as a data loader's workers
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < SPIN_NANOSECONDS);
    return false;
}

int tt_threads(void) { return threads_wanted; }
void tt_set_threads(int count) { threads_wanted = count; }

static void run_parts(int worker) {
    for (int k = 0; k < loop.ranges; k++) {
        int range = (worker + k) % loop.ranges;
        for (Py_ssize_t part; (part = loop.range[range].next++) < begin_of(range + 1);)
            loop.work(loop.context, part, worker);
    }
}

static void *worker_main(void *unused) {
    (void)unused;
    for (;;) {
        spin_until(&vacancies, true);
        pthread_mutex_lock(&state_lock);
        if (!vacancies) pthread_cond_wait(&work_available, &state_lock);
        if (vacancies) {
            int worker = vacancies--;
            running++;
            pthread_mutex_unlock(&state_lock);
            run_parts(worker);
            pthread_mutex_lock(&state_lock);
            if (!--running) pthread_cond_signal(&work_finished);
        }
        pthread_mutex_unlock(&state_lock);
    }
    return NULL;
}

// Start workers until there are `count` of them. Called with `state_lock` held.
static void start_workers(int count) {
    sigset_t all_signals, previous;  // Python's threads handle signals
    sigfillset(&all_signals);
    pthread_sigmask(SIG_SETMASK, &all_signals, &previous);
    for (pthread_t thread; started < count && !pthread_create(&thread, NULL, worker_main, NULL); started++) {
        pthread_detach(thread);
    }
    pthread_sigmask(SIG_SETMASK, &previous, NULL);
}

static void parallel_for(Work work, void *context, Py_ssize_t parts, int threads) {
    if (parts < threads) threads = (int)parts;
    if (threads < 2 || pthread_mutex_trylock(&pool_lock)) {
        for (Py_ssize_t part = 0; part < parts; part++) work(context, part, 0);
        return;
    }
    pthread_mutex_lock(&state_lock);
    start_workers(threads - 1);
    loop.work = work;
    loop.context = context;
    loop.parts = parts;
    loop.ranges = threads < MAX_RANGES ? threads : MAX_RANGES;
    for (int range = 0; range < loop.ranges; range++) loop.range[range].next = begin_of(range);
    vacancies = threads - 1 < started ? threads - 1 : started;
    pthread_cond_broadcast(&work_available);
    pthread_mutex_unlock(&state_lock);
    run_parts(0);
    pthread_mutex_lock(&state_lock);
    vacancies = 0;
    pthread_mutex_unlock(&state_lock);
    spin_until(&running, false);
    pthread_mutex_lock(&state_lock);
    while (running) pthread_cond_wait(&work_finished, &state_lock);
    pthread_mutex_unlock(&state_lock);
    pthread_mutex_unlock(&pool_lock);
}

void tt_parallel_for(Work work, void *context, Py_ssize_t parts, int64_t elements, int threads) {
    if (elements < MIN_ELEMENTS) {
        parallel_for(work, context, parts, 1);
        return;
    }
    PyThreadState *state = PyEval_SaveThread();
    parallel_for(work, context, parts, threads);
    PyEval_RestoreThread(state);
}

void tt_parallel_for_unlocked(Work work, void *context, Py_ssize_t parts, int64_t elements, int threads) {
    parallel_for(work, context, parts, elements < MIN_ELEMENTS ? 1 : threads);
}

// A forked child has none of the threads, and another thread may have held the locks when the process forked.
static void reset_in_child(void) {
    pthread_mutex_init(&pool_lock, NULL);
    pthread_mutex_init(&state_lock, NULL);
    pthread_cond_init(&work_available, NULL);
    pthread_cond_init(&work_finished, NULL);
    started = vacancies = running = 0;
}

void tt_install_fork_handler(void) { pthread_atfork(NULL, NULL, reset_in_child); }
#endif
