#if canImport(Glibc)
  internal import Glibc

  /// A task executor with a fixed number of threads of its own.
  ///
  /// It is for work whose amount unknown senders choose. However much of that work waits, the threads of Swift's pool
  /// stay free for what must not wait: revocations, probes and operators' commands.
  ///
  /// Jobs begin in the order of their arrival. A thread starts when it is needed first, and ends with the executor. If
  /// the system can start none, Swift's pool does the work.
  public final class WorkerExecutor: TaskExecutor {
    private let jobs: JobQueue

    /// - Parameter threads: The number of jobs that run at once, at least 1.
    public init(threads: Int) { jobs = JobQueue(mostThreads: max(1, threads)) }

    deinit { jobs.close() }

    /// Runs `job` after all that arrived before it. Only the runtime calls this.
    public func enqueue(_ job: consuming ExecutorJob) {
      // The task that waits for the job keeps this executor alive.
      jobs.add(JobQueue.Job(job: UnownedJob(job), executor: asUnownedTaskExecutor()))
    }
  }

  /// The jobs that wait, and the threads that run them.
  private final class JobQueue: @unchecked Sendable {
    struct Job {
      let job: UnownedJob
      let executor: UnownedTaskExecutor
    }

    private let mostThreads: Int
    // On the heap, since they must not move.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let change: UnsafeMutablePointer<pthread_cond_t>
    // Guarded by `mutex`, like all below.
    private var waiting: ArraySlice<Job> = []
    private var threads = 0
    /// The threads that wait for a job.
    private var idle = 0
    private var isClosed = false

    init(mostThreads: Int) {
      self.mostThreads = mostThreads
      mutex = .allocate(capacity: 1)
      mutex.initialize(to: pthread_mutex_t())
      change = .allocate(capacity: 1)
      change.initialize(to: pthread_cond_t())
      let codes = (pthread_mutex_init(mutex, nil), pthread_cond_init(change, nil))
      // Fails for want of memory only, without which Swift does not go on either.
      precondition(codes == (0, 0), "no lock: \(codes)")
    }

    deinit {
      pthread_cond_destroy(change)
      change.deinitialize(count: 1)
      change.deallocate()
      pthread_mutex_destroy(mutex)
      mutex.deinitialize(count: 1)
      mutex.deallocate()
    }

    func add(_ job: Job) {
      pthread_mutex_lock(mutex)
      waiting.append(job)
      let needsThread = waiting.count > idle && threads < mostThreads
      if needsThread { threads += 1 }
      pthread_cond_signal(change)
      pthread_mutex_unlock(mutex)
      if needsThread, DetachedThread.start({ self.run() }) != 0 { giveUpThread() }
    }

    /// The threads end when they have run the jobs that wait.
    func close() {
      pthread_mutex_lock(mutex)
      isClosed = true
      pthread_cond_broadcast(change)
      pthread_mutex_unlock(mutex)
    }

    private func giveUpThread() {
      pthread_mutex_lock(mutex)
      threads -= 1
      var orphans: ArraySlice<Job> = []
      if threads == 0 { swap(&orphans, &waiting) }
      pthread_mutex_unlock(mutex)
      for orphan in orphans { globalConcurrentExecutor.enqueue(ExecutorJob(orphan.job)) }
    }

    private func run() {
      while let job = next() { job.job.runSynchronously(on: job.executor) }
    }

    /// Waits for a job; `nil` if the executor has ended.
    private func next() -> Job? {
      pthread_mutex_lock(mutex)
      defer { pthread_mutex_unlock(mutex) }
      while waiting.isEmpty, !isClosed {
        idle += 1
        pthread_cond_wait(change, mutex)
        idle -= 1
      }
      return waiting.popFirst()
    }
  }
#endif
