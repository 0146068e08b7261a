import Foundation
import Glibc
import Locking
import Testing

/// The programs of this package, as they were built beside the tests.
enum Program: String {
  case attest
  case sallyport

  var url: URL {
    // The tests run in an executable that stands in the same folder.
    let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent(rawValue)
  }
}

/// What a program came to.
struct Outcome: Equatable {
  let status: Int32
  let output: String
  let errors: String

  /// The lines of standard error.
  var complaints: [String] { errors.split(separator: "\n").map(String.init) }
}

/// A user with a data folder of their own, which is gone when the test ends.
final class Workplace: Sendable {
  let folder: String
  private let running = Guarded<[RunningProgram]>([])

  init() throws {
    folder = FileManager.default.temporaryDirectory.path + "/attest-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
  }

  deinit {
    for program in running.withLock({ $0 }) { program.stop() }
    try? FileManager.default.removeItem(atPath: folder)
  }

  var environment: [String: String] {
    ["XDG_DATA_HOME": folder + "/data", "HOME": folder, "PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": libraryPath]
  }

  private var libraryPath: String { ProcessInfo.processInfo.environment["LD_LIBRARY_PATH"] ?? "" }

  /// Runs `attest` to its end.
  func run(
    _ arguments: [String], input: String = "", environment: [String: String] = [:]
  ) async throws -> Outcome {
    let process = makeProcess(.attest, arguments)
    process.environment = self.environment.merging(environment) { $1 }
    let (input, output, errors) = (Pipe(input), Pipe(), Pipe())
    process.standardInput = input
    process.standardOutput = output
    process.standardError = errors
    async let status = process.runToEnd()
    async let outputText = output.text()
    async let errorText = errors.text()
    return Outcome(status: try await status, output: await outputText, errors: await errorText)
  }

  /// Starts a program that goes on running, and waits for `lines` lines of its standard output.
  func start(_ program: Program, _ arguments: [String], lines: Int) async throws -> RunningProgram {
    let process = makeProcess(program, arguments)
    process.environment = environment
    let output = Pipe()
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    let running = RunningProgram(process: process)
    self.running.withLock { $0.append(running) }
    running.greeting = await output.firstLines(lines)
    return running
  }

  private func makeProcess(_ program: Program, _ arguments: [String]) -> Process {
    let process = Process()
    process.executableURL = program.url
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: folder)
    return process
  }
}

/// A program that a test has started. `@unchecked Sendable`: `Process` may be stopped from any thread, and the greeting
/// is written before anyone else has the object.
final class RunningProgram: @unchecked Sendable {
  private let process: Process
  fileprivate(set) var greeting: [String] = []

  fileprivate init(process: Process) { self.process = process }

  /// Ends the program and waits for it.
  @discardableResult
  func stop(_ signal: Int32 = SIGTERM) -> Int32 {
    if process.isRunning { kill(process.processIdentifier, signal) }
    process.waitUntilExit()
    return process.terminationStatus
  }
}

extension Process {
  /// Runs the process and returns its exit code.
  fileprivate func runToEnd() async throws -> Int32 {
    try await withCheckedThrowingContinuation { continuation in
      terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
      do {
        try run()
      } catch {
        terminationHandler = nil
        continuation.resume(throwing: error)
      }
    }
  }
}

extension Pipe {
  /// A pipe that yields `text` and then ends.
  fileprivate convenience init(_ text: String) {
    self.init()
    let writer = fileHandleForWriting
    DispatchQueue.global().async {
      try? writer.write(contentsOf: Data(text.utf8))
      try? writer.close()
    }
  }

  /// Everything up to the end.
  fileprivate func text() async -> String {
    let reader = fileHandleForReading
    return await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        continuation.resume(returning: String(decoding: reader.readDataToEndOfFile(), as: UTF8.self))
      }
    }
  }

  /// The first `count` lines, or fewer if there are no more.
  fileprivate func firstLines(_ count: Int) async -> [String] {
    let reader = fileHandleForReading
    return await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        var text = ""
        while text.count(where: { $0 == "\n" }) < count {
          let data = reader.availableData
          if data.isEmpty { break }
          text += String(decoding: data, as: UTF8.self)
        }
        continuation.resume(returning: text.split(separator: "\n").map(String.init))
      }
    }
  }
}
