import Databases
import Dispatch
import Foundation
import Glibc
import Locking
import Testing

@Suite("Group-commit queue")
struct GroupCommitQueueTests {
  /// Records batches. The first one waits until the test lets it continue.
  private final class Recorder: Sendable {
    let batches = LockedValue<[[Int]]>([])
    let hasStarted = DispatchSemaphore(value: 0)
    let mayContinue = DispatchSemaphore(value: 0)
    let hasFinished = DispatchSemaphore(value: 0)

    func commit(_ jobs: [Int]) {
      let isFirst = batches.withLock { batches in
        batches.append(jobs)
        return batches.count == 1
      }
      if isFirst {
        hasStarted.signal()
        mayContinue.wait()
      }
      for _ in jobs { hasFinished.signal() }
    }
  }

  /// Returns a queue whose first batch, with job 0, is running.
  private func busyQueue(
    _ recorder: Recorder, mostWaiting: Int = 100, mostInBatch: Int = 256,
    isExpired: @escaping @Sendable (Int) -> Bool = { _ in false }
  ) -> GroupCommitQueue<Int> {
    let queue = GroupCommitQueue<Int>(
      label: "test", mostWaiting: mostWaiting, mostInBatch: mostInBatch, isExpired: isExpired,
      commit: { recorder.commit($0) })
    #expect(queue.add(0).isAccepted)
    recorder.hasStarted.wait()
    return queue
  }

  private func finish(_ recorder: Recorder, jobs: Int) {
    recorder.mayContinue.signal()
    for _ in 0..<jobs { recorder.hasFinished.wait() }
  }

  @Test("Jobs that arrive while a batch is written form the next one, in their order and at most as large as allowed")
  func batches() {
    let recorder = Recorder()
    let queue = busyQueue(recorder, mostInBatch: 3)
    for job in 1...7 { #expect(queue.add(job).isAccepted) }
    #expect(queue.countOfWaiting == 7)
    finish(recorder, jobs: 8)
    #expect(recorder.batches.withLock { $0 } == [[0], [1, 2, 3], [4, 5, 6], [7]])
    #expect(queue.countOfWaiting == 0)
  }

  @Test("A full queue accepts no job, and accepts jobs again later")
  func full() {
    let recorder = Recorder()
    let queue = busyQueue(recorder, mostWaiting: 2)
    #expect((1...3).map { queue.add($0).isAccepted } == [true, true, false])
    finish(recorder, jobs: 3)
    #expect(queue.add(4).isAccepted)
    recorder.hasFinished.wait()
    #expect(recorder.batches.withLock { $0 } == [[0], [1, 2], [4]])
  }

  @Test("A full queue returns its expired jobs, which then never run, and keeps the order of the others")
  func expired() {
    let recorder = Recorder()
    let queue = busyQueue(recorder, mostWaiting: 3, isExpired: { $0.isMultiple(of: 2) })
    #expect((1...3).map { queue.add($0).expired } == [[], [], []])
    let addition = queue.add(5)
    #expect(addition.isAccepted)
    #expect(addition.expired == [2])
    #expect(!queue.add(7).isAccepted)
    finish(recorder, jobs: 4)
    #expect(recorder.batches.withLock { $0 } == [[0], [1, 3, 5]])
  }

  @Test("A job that expires while the queue looks for expired jobs is not lost")
  func expiresMeanwhile() {
    let recorder = Recorder()
    let questions = LockedValue(0)
    // Job 1 has expired; job 2 expires between the first question about it and the second.
    let queue = busyQueue(
      recorder, mostWaiting: 2,
      isExpired: { job in
        if job == 1 { return true }
        return questions.withLock { questions in
          questions += 1
          return questions > 1
        }
      })
    #expect((1...2).map { queue.add($0).isAccepted } == [true, true])
    #expect(queue.add(3).expired == [1])
    #expect(queue.countOfWaiting == 2)
    finish(recorder, jobs: 3)
    #expect(recorder.batches.withLock { $0 } == [[0], [2, 3]])
  }

  @Test("Each job of many threads runs exactly once, and the jobs of one thread in their order")
  func parallel() {
    let seen = LockedValue<[Int]>([])
    let finished = DispatchSemaphore(value: 0)
    let queue = GroupCommitQueue<Int>(
      label: "test", mostWaiting: 10_000, mostInBatch: 16,
      commit: { jobs in
        seen.withLock { $0 += jobs }
        for _ in jobs { finished.signal() }
      })
    DispatchQueue.concurrentPerform(iterations: 8) { thread in
      for job in 0..<500 { _ = queue.add(thread * 500 + job) }
    }
    for _ in 0..<4_000 { finished.wait() }
    let jobs = seen.withLock { $0 }
    #expect(jobs.sorted() == Array(0..<4_000))
    for thread in 0..<8 {
      let ofThread = jobs.filter { $0 / 500 == thread }
      #expect(ofThread == ofThread.sorted())
    }
  }

  @Test("A job that is added while the thread goes to sleep runs")
  func goesToSleep() {
    let finished = DispatchSemaphore(value: 0)
    let queue = GroupCommitQueue<Int>(label: "test", mostWaiting: 1, commit: { _ in finished.signal() })
    for job in 0..<20_000 {
      // The last job has run, and its thread is on the way to sleep: between zero and some hundred instructions later.
      for _ in 0..<job % 200 { _ = queue.countOfWaiting }
      #expect(queue.add(job).isAccepted)
      guard finished.wait(timeout: .now() + 60) == .success else {
        Issue.record("job \(job) does not run")
        return
      }
    }
  }

  @Test("All batches run on one thread, which has the queue's name, interrupts no other, and ends with the queue")
  func thread() throws {
    let threads = LockedValue<Set<pthread_t>>([])
    let policies = LockedValue<Set<Int32>>([])
    let finished = DispatchSemaphore(value: 0)
    do {
      let queue = GroupCommitQueue<Int>(
        label: "a-queue-of-tests", mostWaiting: 10,
        commit: { _ in
          threads.withLock { _ = $0.insert(pthread_self()) }
          policies.withLock { _ = $0.insert(sched_getscheduler(0)) }
          finished.signal()
        })
      #expect(countOfThreads(named: "a-queue-of-test") == 0, "it starts with the first job")
      for job in 0..<100 {
        _ = queue.add(job)
        finished.wait()
      }
      #expect(threads.withLock { $0.count } == 1)
      #expect(policies.withLock(\.self) == [3], "SCHED_BATCH")
      #expect(countOfThreads(named: "a-queue-of-test") == 1)
    }
    let end = ContinuousClock.now + .seconds(60)
    while countOfThreads(named: "a-queue-of-test") > 0, ContinuousClock.now < end { usleep(1_000) }
    #expect(countOfThreads(named: "a-queue-of-test") == 0)
  }

  private func countOfThreads(named name: String) -> Int {
    let folder = "/proc/self/task"
    let threads = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return threads.count { (try? String(contentsOfFile: "\(folder)/\($0)/comm", encoding: .utf8)) == name + "\n" }
  }

  @Test("A queue that is released while a batch runs still runs the jobs that it has accepted, and then goes")
  func released() {
    /// Is released with the queue.
    final class Owned: Sendable {
      let isReleased: DispatchSemaphore
      init(_ isReleased: DispatchSemaphore) { self.isReleased = isReleased }
      deinit { isReleased.signal() }
    }
    let recorder = Recorder()
    let isReleased = DispatchSemaphore(value: 0)
    do {
      let owned = Owned(isReleased)
      let queue = GroupCommitQueue<Int>(
        label: "test", mostWaiting: 10,
        commit: { jobs in withExtendedLifetime(owned) { recorder.commit(jobs) } })
      #expect(queue.add(0).isAccepted)
      recorder.hasStarted.wait()
      for job in 1...3 { #expect(queue.add(job).isAccepted) }
    }
    finish(recorder, jobs: 4)
    #expect(recorder.batches.withLock { $0 } == [[0], [1, 2, 3]])
    #expect(isReleased.wait(timeout: .now() + 60) == .success)
  }
}
