import Glibc
import TestSupport
import Testing

@testable import ProcessFrame

/// The socket of systemd: a datagram socket at a path, or at a name of the abstract namespace.
private final class Manager {
  let address: String
  private let descriptor: Int32

  init(isAbstract: Bool) throws {
    let name = "\(Places.temporary)notify-\(getpid())-\(UInt32.random(in: 0 ... .max))"
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
    // A missing message fails the test instead of blocking it.
    var timeout = timeval(tv_sec: 10, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit {
    close(descriptor)
    if address.hasPrefix("/") { unlink(address) }
  }

  /// Returns the next message; `nil` if none arrives within 10 seconds.
  func receive() -> String? {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    return count < 0 ? nil : String(decoding: buffer.prefix(count), as: UTF8.self)
  }
}

/// The answers of a service to consecutive liveness checks.
private actor Liveness {
  private var answers: [Bool]
  init(_ answers: [Bool]) { self.answers = answers }
  func next() -> Bool { answers.isEmpty ? false : answers.removeFirst() }
}

/// A clock whose sleeps return immediately. It cancels the task at the last sleep.
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

@Suite("Notifications to systemd", .serialized, .timeLimit(.minutes(1)))
struct NotifyTests {
  @Test("A notification is one datagram, to a path or to an abstract name", arguments: [false, true])
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
    "Without a valid NOTIFY_SOCKET there is no notification socket",
    arguments: [
      [:], ["NOTIFY_SOCKET": ""], ["NOTIFY_SOCKET": "/"], ["NOTIFY_SOCKET": "relative"], ["NOTIFY_SOCKET": "vsock:2:1"],
      ["NOTIFY_SOCKET": "/" + String(repeating: "x", count: 107)],
    ])
  func noSocket(_ environment: [String: String]) {
    #expect(NotifySocket(environment: environment) == nil)
  }

  @Test("A service continues if systemd has closed the socket")
  func gone() throws {
    let address = try Manager(isAbstract: false).address
    let socket = try #require(NotifySocket(environment: ["NOTIFY_SOCKET": address]))
    #expect(!socket.send(.ready))
  }

  @Test("A live service sends a watchdog notification twice per watchdog interval")
  func watchdog() async throws {
    let manager = try Manager(isAbstract: true)
    let socket = try #require(NotifySocket(environment: ["NOTIFY_SOCKET": manager.address]))
    let watchdog = try #require(Watchdog(environment: ["WATCHDOG_USEC": "3000000"], socket: socket))
    let clock = RecordingClock(sleeps: 3)
    let liveness = Liveness([true, false, true])
    await Task { await watchdog.run(clock: clock) { await liveness.next() } }.value
    #expect(await clock.record.steps == Array(repeating: .milliseconds(1500), count: 3))
    socket.send(.stopping)
    #expect([manager.receive(), manager.receive(), manager.receive()] == ["WATCHDOG=1", "WATCHDOG=1", "STOPPING=1"])
  }

  @Test("The new process of an upgrade sends nothing before half an interval has passed")
  func delayedWatchdog() async throws {
    let manager = try Manager(isAbstract: true)
    let socket = try #require(NotifySocket(environment: ["NOTIFY_SOCKET": manager.address]))
    let watchdog = try #require(Watchdog(environment: ["WATCHDOG_USEC": "3000000"], socket: socket))
    let clock = RecordingClock(sleeps: 2)
    await Task { await watchdog.run(clock: clock, startsLater: true) { await Liveness([true]).next() } }.value
    #expect(await clock.record.steps == Array(repeating: .milliseconds(1500), count: 2))
    socket.send(.stopping)
    #expect([manager.receive(), manager.receive()] == ["WATCHDOG=1", "STOPPING=1"])
  }

  @Test(
    "Without a watchdog interval for this process there is no watchdog",
    arguments: [
      [:], ["WATCHDOG_USEC": "0"], ["WATCHDOG_USEC": "x"], ["WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"],
    ])
  func noWatchdog(_ environment: [String: String]) throws {
    let socket = try #require(NotifySocket(environment: ["NOTIFY_SOCKET": "@x"]))
    #expect(Watchdog(environment: environment, socket: socket) == nil)
  }
}

@Suite("Passed sockets")
struct PassedSocketsTests {
  @Test("The passed sockets follow the standard streams; the environment contains their number")
  func descriptors() {
    let environment = ["LISTEN_PID": String(getpid()), "LISTEN_FDS": "2"]
    #expect(PassedSockets.descriptors(environment: environment) == [3, 4])
  }

  @Test(
    "Passed sockets have the passed names, unless the number of names differs",
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
    "Sockets for another process or with an invalid count are not accepted",
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
