public import Glibc

/// Does what systemd does with a socket unit: keeps listening sockets open, and starts a program on them when told to.
public struct SocketUnit: Sendable {
  private static let script = """
    import os, socket, sys
    places = sys.argv[1].split(",")
    listeners = []
    for place in places:
        if place.startswith("/"):
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(place)
            listener.listen()
        else:
            listener = socket.create_server((place, 0))
        listeners.append(listener)
    name = listeners[0].getsockname()
    print("port", 0 if isinstance(name, str) else name[1], flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            for number, listener in enumerate(listeners):
                os.dup2(listener.fileno(), 50 + number)
            for number in range(len(listeners)):
                os.dup2(50 + number, 3 + number)
                os.set_inheritable(3 + number, True)
            os.environ.update(LISTEN_FDS=str(len(listeners)), LISTEN_PID=str(os.getpid()))
            os.execv(sys.argv[2], sys.argv[2:])
        print("started", child, flush=True)
        print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    """

  /// The unit's own process; its output tells starts and ends, its errors are those of the program.
  public let process: ChildProcess
  /// The port of the first socket; 0 for a Unix socket.
  public let port: UInt16

  /// Opens the sockets.
  ///
  /// - Parameters:
  ///   - places: an address of this machine for a free port, or the path of a Unix socket.
  ///   - command: the path of the program, and its arguments.
  public init(at places: [String], command: [String]) async throws {
    process = try ChildProcess("/usr/bin/python3", ["-c", Self.script, places.joined(separator: ",")] + command)
    do {
      let line = try await process.output.first("the port") { $0.hasPrefix("port ") }
      port = UInt16(line.dropFirst("port ".count)) ?? 0
    } catch {
      process.kill()
      throw error
    }
  }

  /// Starts the program. The earlier one must have ended.
  public func start() { process.write("go\n") }

  /// Waits for the start of a program, the first if `number` is 1, and returns its process id.
  public func started(_ number: Int) async throws -> pid_t { pid_t(try await value("started ", number)) }

  /// Waits for the end of a program, and returns its exit code; negative for a signal.
  public func ended(_ number: Int) async throws -> Int32 { Int32(try await value("ended ", number)) }

  private func value(_ word: String, _ number: Int) async throws -> Int {
    let lines = try await process.output.first(number, word) { $0.hasPrefix(word) }
    return Int(lines[number - 1].dropFirst(word.count)) ?? -1
  }

  /// Opens one socket.
  public init(at place: String, command: [String]) async throws { try await self.init(at: [place], command: command) }
}
