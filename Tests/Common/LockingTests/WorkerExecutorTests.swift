import Locking
import Testing

@Suite("Executors with threads of their own")
struct WorkerExecutorTests {
  private struct Counts {
    var running = 0
    var most = 0
    var done = 0
  }

  @Test("All jobs run, no more at once than there are threads", arguments: [1, 3])
  func bounded(_ threads: Int) async {
    let (executor, counts) = (WorkerExecutor(threads: threads), LockedValue(Counts()))
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<200 {
        group.addTask(executorPreference: executor) {
          counts.withLock { ($0.running, $0.most) = ($0.running + 1, max($0.most, $0.running + 1)) }
          // Another job may run here, if there is a thread for it.
          counts.withLock { ($0.running, $0.done) = ($0.running - 1, $0.done + 1) }
          await Task.yield()
        }
      }
    }
    let result = counts.withLock { $0 }
    #expect(result.done == 200 && result.running == 0 && (1...threads).contains(result.most))
  }

  @Test("One thread runs jobs in the order of their arrival")
  func order() async {
    let (executor, order) = (WorkerExecutor(threads: 0), LockedValue<[Int]>([]))
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<100 { group.addTask(executorPreference: executor) { order.withLock { $0.append(number) } } }
    }
    #expect(order.withLock { $0 } == Array(0..<100))
  }

  @Test("An executor that nobody keeps ends, and its jobs still run to their end")
  func ends() async {
    for _ in 0..<50 {
      let value = await withTaskExecutorPreference(WorkerExecutor(threads: 2)) {
        await Task.yield()
        return 7
      }
      #expect(value == 7)
    }
  }
}
