internal import ArgumentParser
internal import Commands
internal import Foundation
internal import Glibc
internal import QRCodes
internal import VaultFormats

/// Reads the QR codes of a picture in a process of its own.
///
/// The search for codes cannot be interrupted, and a picture of a few KiB that looks like thousands of codes keeps it
/// busy for minutes. The kernel ends the process when it has used up its processor time (setrlimit(2)).
struct PictureReader {
  /// This program.
  var program = "/proc/self/exe"
  /// The processor time of a picture, in seconds. One of 40 megapixels takes about two.
  var seconds = 20

  /// The texts of all codes in a PNG or JPEG file.
  ///
  /// - Parameter place: Where the picture is from, for messages.
  func texts(in file: [UInt8], at place: String) throws(Failure) -> [String] {
    // Ten times as long by the clock, for a busy machine.
    let command = [program, ReadPictureCommand.name, "--seconds", "\(seconds)"]
    guard let run = HelperProgram.run(command, input: file, keepsOutput: true, within: seconds * 10) else {
      throw Failure(.unavailable, "\(place): the process that reads pictures cannot be started")
    }
    if let answer = try? JSONDecoder().decode(ReadPictureCommand.Answer.self, from: Data(run.output)) {
      guard let fault = answer.fault else { return answer.texts }
      throw Failure(
        .badData, "\(place): \(fault)",
        hint: answer.hasNoCode ? "a picture of the whole code, sharp and straight" : nil)
    }
    let isTooLong = run.status == nil || run.signal == SIGXCPU || run.signal == SIGKILL
    throw Failure(
      .badData,
      isTooLong
        ? "\(place): the picture takes more than \(seconds) s of processor time to read"
        : "\(place): the picture ended the process that reads it",
      hint: "cut out the code, and scan that")
  }
}

/// What `PictureReader` starts: reads a picture from standard input and writes an answer. Not for people.
struct ReadPictureCommand: ParsableCommand {
  static let name = "read-picture"
  static let configuration = CommandConfiguration(
    commandName: name, abstract: "Read a picture for another command.",
    discussion: """
      Example:
        authenticator read-picture --seconds 20 <code.png
      """, shouldDisplay: false)

  /// The memory of a picture beyond that of the program, in bytes.
  private static let memory: UInt = 1 << 30

  @Option(help: "The processor time, 1 to 600.")
  var seconds = 20

  /// The result, on standard output.
  struct Answer: Codable {
    var texts: [String] = []
    /// Why there are none.
    var fault: String?
    var hasNoCode = false
  }

  func run() throws {
    guard (1...600).contains(seconds) else { throw Failure(.usage, "--seconds \(seconds): 1 to 600") }
    let file = try InputFile.read("-", largest: QRReader.largest) ?? []
    limit()
    var answer = Answer()
    do throws(QRReaderError) {
      answer.texts = try QRReader.texts(in: file, until: EntryLink.isLink)
    } catch {
      answer.fault = "\(error)"
      answer.hasNoCode = error == .noCode
    }
    JSONOutput.print(answer)
  }

  /// Limits processor time and memory. The kernel ends the process at the first; beyond the second, no memory is given.
  private func limit() {
    var time = rlimit(rlim_cur: rlim_t(seconds), rlim_max: rlim_t(seconds + 1))
    setrlimit(__rlimit_resource_t(RLIMIT_CPU.rawValue), &time)
    // Counted from what is mapped already, of which sanitizers have much.
    let pages = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ").first
    guard let pages = pages.flatMap({ UInt($0) }) else { return }
    let most = pages.multipliedReportingOverflow(by: UInt(getpagesize()))
    guard !most.overflow else { return }
    var space = rlimit(rlim_cur: most.partialValue + Self.memory, rlim_max: most.partialValue + Self.memory)
    setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &space)
  }
}
