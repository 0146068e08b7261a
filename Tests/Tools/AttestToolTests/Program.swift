import Foundation
import Glibc
import Locking
import TestSupport
import Testing

/// The programs of this package.
enum Program: String {
  case attest
  case sallyport

  var path: String { Places.products + "/" + rawValue }
}

/// The result of a program.
struct Outcome: Equatable {
  let status: Int32
  let output: String
  let errors: String

  /// The lines of standard error.
  var errorLines: [String] { errors.split(separator: "\n").map(String.init) }
}

/// The working folder and data folder of a user, which are removed at the end of the test.
final class Workplace: Sendable {
  let folder: String
  private let running = LockedValue<[RunningProgram]>([])

  init() throws {
    folder = FileManager.default.temporaryDirectory.path + "/attest-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
  }

  deinit {
    for program in running.withLock({ $0 }) { program.kill() }
    try? FileManager.default.removeItem(atPath: folder)
  }

  var environment: [String: String] {
    ["XDG_DATA_HOME": folder + "/data", "HOME": folder, "PATH": "/usr/bin:/bin"]
  }

  /// Runs a program until it exits.
  func run(
    _ arguments: [String], of program: Program = .attest, input: String = "", environment: [String: String] = [:]
  ) async throws -> Outcome {
    let process = try ChildProcess(
      program.path, arguments, environment: self.environment.merging(environment) { $1 }, in: folder)
    defer { process.kill() }
    DispatchQueue.global().async {
      process.write(input)
      process.closeInput()
    }
    let exit = try await process.exit(within: .seconds(120))
    return Outcome(
      status: try #require(exit.code), output: try await process.output.text(),
      errors: try await process.errors.text())
  }

  /// Starts a program that keeps running, and waits for `lines` lines of its standard output.
  func start(_ program: Program, _ arguments: [String], lines: Int) async throws -> RunningProgram {
    let process = try ChildProcess(program.path, arguments, environment: environment, in: folder)
    process.closeInput()
    let running = RunningProgram(process: process, firstLines: try await process.output.first(lines))
    self.running.withLock { $0.append(running) }
    return running
  }
}

/// A running program, which a test has started.
struct RunningProgram: Sendable {
  private let process: ChildProcess
  let firstLines: [String]

  fileprivate init(process: ChildProcess, firstLines: [String]) {
    self.process = process
    self.firstLines = firstLines
  }

  /// Stops the program, waits for its exit and returns its exit code; `nil` if the signal killed it.
  @discardableResult
  func stop(_ signal: Int32 = SIGTERM) async throws -> Int32? {
    process.send(signal)
    return try await process.exit().code
  }

  fileprivate func kill() { process.kill() }
}
