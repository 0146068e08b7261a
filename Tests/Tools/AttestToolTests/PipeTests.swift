import ByteCoding
import Foundation
import Glibc
import Locking
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@testable import attest

/// A WebSocket server with TLS in this process, with handlers from a test, and the client's arguments to connect to it.
/// A client certificate replaces the device.
final class TLSBackend: RequestResponder {
  typealias Opened = @Sendable (WebSocketChannel) -> Void
  typealias Received = @Sendable (WebSocketMessage, WebSocketChannel) -> Void

  let place: Workplace
  /// The codes of the clients' Close frames, in order; 0 for none.
  let closes = Watched<[UInt16]>([])
  private let opened: Opened
  private let received: Received
  private let answer: Response?
  private let folder: AuthorityFolder
  private let engine = LockedValue<Engine?>(nil)

  /// - Parameter answer: The response to the handshake; `nil` for 101.
  init(answer: Response? = nil, opened: @escaping Opened = { _ in }, received: @escaping Received = { _, _ in }) throws
  {
    place = try Workplace()
    folder = AuthorityFolder(path: place.folder + "/dev")
    _ = try folder.loadOrMake(appID: "AAABBBCCC1.com.example.app", at: .now())
    (self.opened, self.received, self.answer) = (opened, received, answer)
    let tls = try ServerTLS(.init(certificateFile: folder.serverCertificatePath, keyFile: folder.serverKeyPath))
    let engine = try Engine(listeningAt: .ipv4([127, 0, 0, 1], port: 0), loops: 1, tls: tls, responder: self)
    self.engine.withLock { $0 = engine }
  }

  var url: String { "wss://localhost:\(engine.withLock { $0?.address.port ?? 0 })/" }

  var authority: String { folder.tlsAuthorityPath }

  var arguments: [String] {
    ["connect", url, "--ca", authority, "--cert", folder.serverCertificatePath]
      + ["--key", folder.serverKeyPath]
  }

  func connect(_ arguments: String..., input: String = "") async throws -> Outcome {
    try await place.run(self.arguments + arguments, input: input)
  }

  /// Runs `attest connect` in a shell's `script`, as `"$@"`.
  func connect(by script: String, _ arguments: String...) async throws -> Outcome {
    let process = try ChildProcess(
      "/bin/sh", ["-c", script, "sh", Program.attest.path] + self.arguments + arguments,
      environment: place.environment.mapValues(Optional.some))
    defer { process.kill() }
    let exit = try await process.exit()
    return Outcome(
      status: try #require(exit.code), output: try await process.output.text(), errors: try await process.errors.text())
  }

  func stop() { engine.withLock { $0.take() }?.stop() }

  func respond(to request: Request, from peer: Peer) async -> Disposition {
    if let answer { return .respond(answer) }
    return .converse(BackendSession(self))
  }

  func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    Response(status: 400)
  }

  private final class BackendSession: WebSocketSession {
    let subprotocol: String? = nil
    let maxMessage = 1 << 20
    private let backend: TLSBackend
    private let socket = LockedValue<WebSocketChannel?>(nil)

    init(_ backend: TLSBackend) { self.backend = backend }

    func opened(_ socket: WebSocketChannel) {
      self.socket.withLock { $0 = socket }
      backend.opened(socket)
    }

    func received(_ message: WebSocketMessage) {
      if let socket = socket.withLock({ $0 }) { backend.received(message, socket) }
    }

    func closed(code: UInt16?, reason: String) {
      socket.withLock { $0 = nil }
      backend.closes.update { $0.append(code ?? 0) }
    }
  }
}

@Suite("The pipe of attest connect", .serialized)
struct PipeTests {
  @Test(
    "The exit code depends on the server's close code",
    arguments: [
      (1000, 0), (1001, 75), (1011, 76), (1012, 75), (1013, 75), (1014, 69), (3000, 76), (3003, 77), (3008, 75),
    ] as [(UInt16, Int32)])
  func closeCodes(code: UInt16, status: Int32) async throws {
    let backend = try TLSBackend(opened: { $0.close(CloseCode(code), reason: "so it is") })
    defer { backend.stop() }
    let outcome = try await backend.connect("--stay")
    #expect(outcome.status == status, "\(outcome.errors)")
    #expect(outcome.errors.contains("so it is") == (status != 0))
  }

  @Test("Control and format characters of the server's reason are not printed")
  func escapes() async throws {
    let backend = try TLSBackend(opened: { $0.close(.internalError, reason: "\u{1B}]0;mine\u{07}\u{9B}2J\u{202E}") })
    defer { backend.stop() }
    let outcome = try await backend.connect("--stay")
    #expect(outcome.status == 76)
    #expect(outcome.errors.contains("]0;mine"))
    let controls = outcome.errors.unicodeScalars.filter { TerminalText.isUnsafe($0) && $0 != "\n" }
    #expect(controls.isEmpty)
  }

  @Test("The server's close reason is reported, not the later failure to send")
  func closeBeforeSendFault() async throws {
    let backend = try TLSBackend(received: { _, socket in
      socket.send(.binary(Array(repeating: 0, count: 1 << 18)))
      socket.close(.revoked, reason: "gone")
    })
    defer { backend.stop() }
    // The client is still writing the echo when the Close frame arrives, and sending fails.
    let outcome = try await backend.connect(
      by: #"{ "$@" </dev/zero; echo "status $?" >&2; } | { sleep 1; cat >/dev/null; }"#, "--binary")
    #expect(outcome.errorLines == ["error: the server closed the socket with 3003: gone", "status 77"])
  }

  @Test("Unreadable input is an error, not the end of the input")
  func unreadableInput() async throws {
    let backend = try TLSBackend()
    defer { backend.stop() }
    let outcome = try await backend.connect(by: #""$@" </"#)
    #expect(outcome.status == 66)
    #expect(outcome.errorLines.first == "error: standard input: Is a directory")
  }

  @Test("The client waits for non-blocking input")
  func nonblockingInput() async throws {
    let backend = try TLSBackend(received: { message, socket in socket.send(message) })
    defer { backend.stop() }
    let nonblocking =
      "import os,sys,fcntl; fcntl.fcntl(0,fcntl.F_SETFL,os.O_NONBLOCK); os.execv(sys.argv[1],sys.argv[1:])"
    let outcome = try await backend.connect(
      by: "{ sleep 0.5; echo late; sleep 0.5; echo later; } | python3 -c '\(nonblocking)' \"$@\"", "--linger",
      "2.5")
    #expect(outcome == Outcome(status: 0, output: "late\nlater\n", errors: ""))
  }

  @Test("With --stay, the client waits for the server after its input has ended; otherwise silence closes the socket")
  func stay() async throws {
    let delay = LockedValue(Duration.milliseconds(700))
    let backend = try TLSBackend(received: { message, socket in
      Task {
        try? await Task.sleep(for: delay.withLock { $0 })
        socket.send(message)
        socket.close(.normal)
      }
    })
    defer { backend.stop() }
    #expect(
      try await backend.connect("--stay", "--linger", "0", input: "x\n")
        == Outcome(status: 0, output: "x\n", errors: ""))
    // Much longer than the client waits, even on a busy machine. The test does not wait for it.
    delay.withLock { $0 = .seconds(20) }
    #expect(try await backend.connect("--linger", "0.1", input: "x\n") == Outcome(status: 0, output: "", errors: ""))
  }

  @Test("With --binary, any number of arbitrary bytes is carried")
  func binary() async throws {
    let backend = try TLSBackend(received: { message, socket in socket.send(message) })
    defer { backend.stop() }
    let bytes = (0..<(3 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 7) }
    let file = backend.place.folder + "/bytes"
    try Data(bytes).write(to: URL(fileURLWithPath: file))
    let outcome = try await backend.connect(by: "\"$@\" <'\(file)' | cmp - '\(file)'", "--binary", "--linger", "2.5")
    #expect(outcome == Outcome(status: 0, output: "", errors: ""))
  }

  @Test("A signal closes the socket in order", arguments: [SIGINT, SIGTERM])
  func signals(signal: Int32) async throws {
    let backend = try TLSBackend(received: { message, socket in socket.send(message) })
    defer { backend.stop() }
    let process = try ChildProcess(Program.attest.path, backend.arguments)
    defer { process.kill() }
    process.write("hello\n")
    _ = try await process.output.first("the echo") { $0 == "hello" }
    process.send(signal)
    #expect(try await process.exit().code == 0)
    try await backend.closes.wait(for: "the Close") { $0 == [1000] ? () : nil }
  }

  @Test("A path that the server does not have is reported as a refusal with a hint")
  func notFound() async throws {
    let backend = try TLSBackend(answer: Response(status: 404))
    defer { backend.stop() }
    let outcome = try await backend.connect("--once", "x")
    #expect(outcome.status == 77)
    #expect(outcome.errorLines.first == "error: the answer is not a gate's: 404: no reason given")
    #expect(outcome.errorLines.last?.contains("does it have this path?") == true)
  }
}
