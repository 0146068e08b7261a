import Foundation
import Glibc
import ProcessFrame
import TestSupport
import Testing

@Suite("The new process of a graceful upgrade", .serialized, .timeLimit(.minutes(2)))
struct UpgradeChildTests {
  /// Runs `script` as the new process, which writes to `folder/said`, and returns the verdict and its output.
  private func start(
    _ script: String, passing sockets: [(name: String, descriptor: Int32)] = [],
    environment: [String: String] = ["PATH": "/usr/bin:/bin"], within limit: Duration = .seconds(20)
  ) async throws -> (verdict: UpgradeChild.Verdict, output: [String], id: pid_t) {
    try await Places.withTemporaryFolder { folder in
      let program = ExecutableLocator(
        path: try Places.tool("bash"), arguments: ["bash", "-c", script, "bash", folder + "/said"])
      let child = try UpgradeChild.start(program, passing: sockets, environment: environment)
      let verdict = await child.verdict(within: limit)
      if case .ready = verdict { child.end() }
      let output = (try? String(contentsOfFile: folder + "/said", encoding: .utf8)) ?? ""
      return (verdict, output.split(separator: "\n").map(String.init), child.id)
    }
  }

  @Test(
    "The new process gets only the sockets, with names and its own process id, as systemd passes them")
  func sockets() async throws {
    let pipe = Pipe()
    let stray = open("/dev/null", O_RDONLY)
    defer { close(stray) }
    let descriptor = pipe.fileHandleForWriting.fileDescriptor
    let script = """
      { echo "$LISTEN_FDS $LISTEN_FDNAMES"; [ "$LISTEN_PID" = "$$" ] && echo own; echo "$WATCHDOG_PID $KEPT"
      for fd in /proc/$$/fd/*; do n=${fd##*/}; [ "$n" -lt 255 ] && [ -e "/proc/$$/fd/$n" ] \\
        && echo "fd $n"; done; } > "$1"
      echo through >&4; echo ready >&6
      """
    let (verdict, output, _) = try await start(
      script, passing: [("public", stray), ("admin", descriptor)],
      environment: [
        "PATH": "/usr/bin:/bin", "LISTEN_PID": "1", "LISTEN_FDS": "7", "LISTEN_FDNAMES": "x", "WATCHDOG_PID": "1",
        "KEPT": "kept",
      ])
    #expect(verdict == .ready)
    #expect(output.first == "4 public:admin:\(LingeringProcesses.descriptorName):\(UpgradeParent.descriptorName)")
    #expect(output.dropFirst().prefix(2) == ["own", " kept"])
    // The standard streams, the passed sockets, and the file to which bash redirects its output.
    let numbers = Set(output.dropFirst(3))
    #expect(numbers.isSuperset(of: (0...6).map { "fd \($0)" }) && numbers.count <= 8, "\(output)")
    close(descriptor)
    #expect(String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self) == "through\n")
  }

  @Test("The new process has default signal dispositions, even if the old process ignores signals")
  func signals() async throws {
    let before = signal(SIGUSR2, SIG_IGN)
    defer { signal(SIGUSR2, before) }
    // Read in a child of bash, which inherits bash's own dispositions.
    let script = "grep -E '^Sig(Blk|Ign)' /proc/self/status > \"$1\"; echo ready >&4"
    let (verdict, output, _) = try await start(script)
    #expect(verdict == .ready)
    // The bits for signals 1 to 31; 32 and 33 belong to the C library.
    let sets = output.compactMap { UInt64($0.split(separator: "\t").last ?? "", radix: 16) }
    #expect(sets.map { $0 & 0x7FFF_FFFF } == [0, 0], "\(output)")
  }

  @Test("An old process that ignores SIGCHLD learns how the new process ended")
  func ignoredEnds() async {
    await #expect(processExitsWith: .success) {
      signal(SIGCHLD, SIG_IGN)
      let program = ExecutableLocator(path: try Places.tool("bash"), arguments: ["bash", "-c", "exit 78"])
      let child = try UpgradeChild.start(program, passing: [], environment: ["PATH": "/usr/bin:/bin"])
      let verdict = await child.verdict(within: .seconds(20))
      exit(verdict == .failed("the new process exited with status 78") ? 0 : 1)
    }
  }

  @Test(
    "A new process that does not become ready has exited, and the reason is known",
    arguments: [
      ("printf 'error: a\\nhint: b\\n' >&4; exit 78", "error: a\nhint: b\n"),
      ("exit 78", "the new process exited with status 78"),
      ("kill -9 $$", "the new process was killed by signal 9"), ("echo rea >&4", "rea\n"),
      ("exec 4>&-; exit 3", "the new process exited with status 3"),
      ("exec sleep 60", "the new process did not report readiness in time"),
    ])
  func failures(_ script: String, _ reason: String) async throws {
    let (verdict, _, id) = try await start(script, within: script.contains("sleep") ? .milliseconds(300) : .seconds(20))
    #expect(verdict == .failed(reason))
    #expect(kill(id, 0) == -1 && errno == ESRCH)
  }

  /// The parent of a process, as proc(5) shows it; `nil` if there is no such process.
  private static func parent(of id: pid_t) -> pid_t? {
    let status = try? String(contentsOfFile: "/proc/\(id)/status", encoding: .utf8)
    let line = status?.split(separator: "\n").first { $0.hasPrefix("PPid:") }
    return line.flatMap { pid_t($0.split(separator: "\t").last ?? "") }
  }

  /// The children of this process, zombies included.
  private static var children: Set<pid_t> {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    return Set(names.compactMap { pid_t($0) }.filter { parent(of: $0) == getpid() })
  }

  @Test("A released process is not a descendant of the old one, lives on, and leaves no child behind")
  func release() async throws {
    let before = Self.children
    let program = ExecutableLocator(
      path: try Places.tool("bash"), arguments: ["bash", "-c", "echo ready >&4; exec 4>&-; exec sleep 600"])
    let child = try UpgradeChild.start(program, passing: [], environment: ["PATH": "/usr/bin:/bin"])
    defer { kill(child.id, SIGKILL) }
    #expect(await child.verdict(within: .seconds(20)) == .ready)
    let waiter = try #require(Self.parent(of: child.id))
    #expect(Self.parent(of: waiter) == getpid())
    child.release()
    let parent = try #require(Self.parent(of: child.id))
    #expect(parent != waiter && parent != getpid())
    #expect(Self.parent(of: waiter) == nil && Self.children.subtracting(before).isEmpty)
    // It is no longer this process's to kill.
    child.end()
    #expect(Self.parent(of: child.id) == parent)
  }

  @Test("An old process hears the request to end of its new process, also through further upgrades")
  func requests() async throws {
    let script = "echo ready >&4; exec 4>&-; printf 1 >&3; exec sleep 600"
    let asking = try UpgradeChild.start(
      ExecutableLocator(path: try Places.tool("bash"), arguments: ["bash", "-c", script]), passing: [],
      environment: ["PATH": "/usr/bin:/bin"])
    #expect(await asking.verdict(within: .seconds(20)) == .ready)
    #expect(await asking.isAskedToEnd())
    asking.end()
    let silent = try UpgradeChild.start(
      ExecutableLocator(path: try Places.tool("bash"), arguments: ["bash", "-c", "echo ready >&4"]), passing: [],
      environment: ["PATH": "/usr/bin:/bin"])
    #expect(await silent.verdict(within: .seconds(20)) == .ready)
    #expect(await !silent.isAskedToEnd())

    var pairs: [[Int32]] = []
    for _ in 0..<2 {
      var ends: [Int32] = [-1, -1]
      try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
      pairs.append(ends)
    }
    // The first process has exited, the second one has not.
    let lingering = LingeringProcesses(descriptors: pairs.map { $0[1] })
    close(pairs[0][0])
    let copies = lingering.copies()
    #expect(copies.map(\.name) == [LingeringProcesses.descriptorName])
    LingeringProcesses(descriptors: copies.map(\.descriptor)).end()
    var byte: UInt8 = 0
    #expect(recv(pairs[1][0], &byte, 1, Int32(MSG_DONTWAIT)) == 1)
    close(pairs[1][0])
    lingering.end()
  }

  @Test(
    "A new process that cannot be started is reported immediately",
    arguments: [("/nowhere/sallyport", "No such file or directory"), ("/etc/passwd", "Permission denied")])
  func notStarted(_ path: String, _ reason: String) {
    let fault = #expect(throws: UpgradeChild.StartError.self) {
      _ = try UpgradeChild.start(ExecutableLocator(path: path, arguments: ["x"]), passing: [], environment: [:])
    }
    #expect(fault?.description == "\(path) cannot be started: \(reason)")
  }
}

@Suite("The old process of a graceful upgrade", .timeLimit(.minutes(1)))
struct UpgradeParentTests {
  private func reported(_ tell: (UpgradeParent) -> Void) -> String {
    let pipe = Pipe()
    let predecessor = UpgradeParent(descriptor: dup(pipe.fileHandleForWriting.fileDescriptor))
    try? pipe.fileHandleForWriting.close()
    tell(predecessor)
    return String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  }

  @Test("The old process receives only the first report")
  func first() {
    #expect(reported { $0.reportReady() } == "ready\n")
    #expect(
      reported {
        $0.tell(failure: "error: x")
        $0.reportReady()
      } == "error: x")
  }
}

@Suite("Program of the new process", .timeLimit(.minutes(1)))
struct ExecutableLocatorTests {
  private static var executable: String {
    (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
  }

  @Test("The program is found by path, by search, or by the running executable if its name leads to another file")
  func place() throws {
    let executable = Self.executable
    let name = (executable as NSString).lastPathComponent
    let folder = (executable as NSString).deletingLastPathComponent
    #expect(
      ExecutableLocator(arguments: [executable, "a"], searchPath: nil)
        == ExecutableLocator(path: executable, arguments: [executable, "a"]))
    #expect(ExecutableLocator(arguments: [name], searchPath: "/nowhere:\(folder)").path == "\(folder)/\(name)")
    for other in ["/bin/sh", "sh", "", "./nothing"] {
      #expect(ExecutableLocator(arguments: [other], searchPath: "/bin").path == executable)
    }
  }

  @Test("The symbolic link to the program is started, so that the link can be switched")
  func link() async throws {
    try await Places.withTemporaryFolder { folder in
      let link = folder + "/current"
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: Self.executable)
      #expect(ExecutableLocator(arguments: [link], searchPath: nil).path == link)
    }
  }
}
