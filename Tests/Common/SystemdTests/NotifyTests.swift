import Glibc
import Testing

@testable import Systemd

/// The end that systemd has: a datagram socket at a path, or at a name of the abstract namespace.
private final class Manager {
  let address: String
  private let descriptor: Int32

  init(isAbstract: Bool) throws {
    let name = "/tmp/notify-\(getpid())-\(UInt32.random(in: 0 ... .max))"
    address = isAbstract ? "@" + name.dropFirst() : name
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var own = sockaddr_un()
    own.sun_family = sa_family_t(AF_UNIX)
    var bytes = Array(address.utf8)
    if isAbstract { bytes[0] = 0 }
    withUnsafeMutableBytes(of: &own.sun_path) { $0.copyBytes(from: bytes) }
    let length = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count)
    let code = withUnsafePointer(to: &own) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
    }
    try #require(code == 0)
    // A message that never comes is a failure, not a test without end.
    var patience = timeval(tv_sec: 10, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit {
    close(descriptor)
    if address.hasPrefix("/") { unlink(address) }
  }

  /// The next message; `nil` if none comes.
  func receive() -> String? {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    return count < 0 ? nil : String(decoding: buffer.prefix(count), as: UTF8.self)
  }
}

/// What a service says when it is asked whether it is alive, one after another.
private actor Life {
  private var answers: [Bool]
  init(_ answers: [Bool]) { self.answers = answers }
  func next() -> Bool { answers.isEmpty ? false : answers.removeFirst() }
}

/// A clock on which time passes at once. It cancels the task that sleeps a last time.
private struct RecordingClock: Clock {
  struct Instant: InstantProtocol {
    var offset = Duration.zero
    func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
    func duration(to other: Instant) -> Duration { other.offset - offset }
    static func < (first: Instant, second: Instant) -> Bool { first.offset < second.offset }
  }

  actor Record {
    private(set) var steps: [Duration] = []
    func add(_ step: Duration) -> Int {
      steps.append(step)
      return steps.count
    }
  }

  let sleeps: Int
  let record = Record()
  var now: Instant { Instant() }
  var minimumResolution: Duration { .zero }

  func sleep(until deadline: Instant, tolerance: Duration?) async throws {
    if await record.add(deadline.offset) == sleeps { withUnsafeCurrentTask { $0?.cancel() } }
  }
}

@Suite("A service tells systemd how it is", .serialized, .timeLimit(.minutes(1)))
struct NotifyTests {
  @Test("in one datagram a message, at a path or at an abstract name", arguments: [false, true])
  func messages(isAbstract: Bool) throws {
    let manager = try Manager(isAbstract: isAbstract)
    let socket = try #require(NotifySocket(environment: ["NOTIFY_SOCKET": manager.address]))
    #expect(socket.send(.ready, .status("serving\nat 443")))
    #expect(manager.receive() == "READY=1\nSTATUS=serving at 443")
    #expect(socket.send(.stopping))
    #expect(manager.receive() == "STOPPING=1")
    #expect(socket.send(.mainProcess(4711), .ready))
    #expect(manager.receive() == "MAINPID=4711\nREADY=1")
  }

  @Test(
    "and nobody, if nobody asks",
    arguments: [
      [:], ["NOTIFY_SOCKET": ""], ["NOTIFY_SOCKET": "/"], ["NOTIFY_SOCKET": "relative"], ["NOTIFY_SOCKET": "vsock:2:1"],
      ["NOTIFY_SOCKET": "/" + String(repeating: "x", count: 107)],
    ])
  func nobody(_ environment: [String: String]) {
    #expect(NotifySocket(environment: environment) == nil)
  }

  @Test("and goes on if nobody listens any more")
  func gone() throws {
    let address = try Manager(isAbstract: false).address
    let socket = try #require(NotifySocket(environment: ["NOTIFY_SOCKET": address]))
    #expect(!socket.send(.ready))
  }

  @Test("that it is alive, twice in the time that systemd waits, while it is")
  func watchdog() async throws {
    let manager = try Manager(isAbstract: true)
    let socket = try #require(NotifySocket(environment: ["NOTIFY_SOCKET": manager.address]))
    let watchdog = try #require(Watchdog(environment: ["WATCHDOG_USEC": "3000000"], socket: socket))
    let clock = RecordingClock(sleeps: 3)
    let life = Life([true, false, true])
    await Task { await watchdog.run(clock: clock) { await life.next() } }.value
    #expect(await clock.record.steps == Array(repeating: .milliseconds(1500), count: 3))
    socket.send(.stopping)
    #expect([manager.receive(), manager.receive(), manager.receive()] == ["WATCHDOG=1", "WATCHDOG=1", "STOPPING=1"])
  }

  @Test(
    "and no sign of life if none is waited for",
    arguments: [
      [:], ["WATCHDOG_USEC": "0"], ["WATCHDOG_USEC": "x"], ["WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"],
    ])
  func noWatchdog(_ environment: [String: String]) throws {
    let socket = try #require(NotifySocket(environment: ["NOTIFY_SOCKET": "@x"]))
    #expect(Watchdog(environment: environment, socket: socket) == nil)
  }
}

@Suite("Sockets that others opened for a process")
struct PassedSocketsTests {
  @Test("are those behind the standard streams, as many as the environment says")
  func descriptors() {
    let environment = ["LISTEN_PID": String(getpid()), "LISTEN_FDS": "2"]
    #expect(PassedSockets.descriptors(environment: environment) == [3, 4])
  }

  @Test(
    "have the names that they were passed with, unless these are not as many",
    arguments: [
      (nil, ["unknown", "unknown"]), ("a:b", ["a", "b"]), (":b", ["", "b"]), ("a", ["unknown", "unknown"]),
      ("a:b:c", ["unknown", "unknown"]),
    ])
  func names(_ given: String?, _ names: [String]) {
    var environment = ["LISTEN_PID": String(getpid()), "LISTEN_FDS": "2"]
    environment["LISTEN_FDNAMES"] = given
    let passed = PassedSockets.named(environment: environment)
    #expect(passed.map(\.descriptor) == [3, 4] && passed.map(\.name) == names)
  }

  @Test(
    "are not taken if they were meant for another process, or their number makes no sense",
    arguments: [
      [:], ["LISTEN_FDS": "1"], ["LISTEN_PID": "1", "LISTEN_FDS": "1"], ["LISTEN_PID": "self", "LISTEN_FDS": "0"],
      ["LISTEN_PID": "self", "LISTEN_FDS": "-1"], ["LISTEN_PID": "self", "LISTEN_FDS": "2147483647"],
      ["LISTEN_PID": "self", "LISTEN_FDS": "x"], ["LISTEN_PID": "self"],
    ])
  func none(_ environment: [String: String]) {
    let own = environment.mapValues { $0 == "self" ? String(getpid()) : $0 }
    #expect(PassedSockets.descriptors(environment: own) == [])
  }
}
