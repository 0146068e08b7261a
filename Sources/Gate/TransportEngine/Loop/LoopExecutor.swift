/// The loop as a task executor. A decision about a request begins on the loop and continues there after each wait.
/// That costs a wake-up of the loop, but no switch to another thread.
extension EventLoop: TaskExecutor {
  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let isAccepted = execute { loop in job.runSynchronously(on: loop.asUnownedTaskExecutor()) }
    guard !isAccepted else { return }
    // The loop has stopped. The task must still run to its end. It finds no session, because the slots of a
    // stopped loop never change.
    globalConcurrentExecutor.enqueue(ExecutorJob(job))
  }
}
