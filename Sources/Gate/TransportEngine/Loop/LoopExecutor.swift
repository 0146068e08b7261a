/// The loop as the place where its tasks run: a decision about a request begins on the loop, waits wherever it has to, and
/// goes on there. It costs a wake-up of the loop, and none of another thread.
extension EventLoop: TaskExecutor {
  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let isAccepted = execute { loop in job.runSynchronously(on: loop.asUnownedTaskExecutor()) }
    guard !isAccepted else { return }
    // The loop has stopped, and with it all that the task was for. It must come to its end nevertheless, and finds no
    // session any more: nothing changes a stopped loop's slots.
    globalConcurrentExecutor.enqueue(ExecutorJob(job))
  }
}
