import Foundation

/// The commands of the program other than fuzzing, selected by the first argument.
enum Command {
  /// Runs the command in `arguments` and returns its exit status; `nil` if the arguments are for libFuzzer.
  static func run(_ arguments: [String]) -> CInt? {
    do {
      switch arguments.first {
      case "list":
        for target in FuzzTarget.all { print(target.name) }
        return 0
      case "seeds":
        return try writeSeeds()
      case "verdicts":
        return answerVerdicts()
      default:
        return nil
      }
    } catch {
      Standard.error("error: \(error)")
      return 1
    }
  }

  /// Writes the seeds and words of every target. Checks that the invariants pass for its seeds and that at least one
  /// seed is accepted: a target that refuses everything finds nothing.
  private static func writeSeeds() throws -> CInt {
    var isSound = true
    for target in FuzzTarget.all {
      let seeds = try target.seeds()
      var accepted = 0
      for seed in seeds {
        do throws(InvariantViolation) { accepted += try target.accepts(seed) ? 1 : 0 } catch {
          isSound = false
          Standard.error("error: \(target.name): a seed violates an invariant: \(error)\nhint: \(seed.prefix(200))")
        }
      }
      if accepted == 0 || seeds.contains(where: { $0.count > target.longest }) {
        isSound = false
        Standard.error("error: \(target.name): no seed is accepted, or a seed is longer than the longest input")
      }
      try write(seeds, of: target)
    }
    return isSound ? 0 : 1
  }

  private static func write(_ seeds: [[UInt8]], of target: FuzzTarget) throws {
    let folder = try Fixtures.folder("seeds/\(target.name)", emptied: true)
    for (index, seed) in seeds.enumerated() {
      try Data(seed).write(to: folder.appendingPathComponent(String(index)))
    }
    let words = target.words.map { "\"\(escaped($0))\"\n" }.joined()
    try Data(words.utf8).write(to: Fixtures.folder("words").appendingPathComponent(target.name))
  }

  /// The format of libFuzzer's dictionaries: every character that is not plain is written as `\xAB`.
  private static func escaped(_ word: String) -> String {
    word.utf8.map { byte -> String in
      let isPlain = (0x20...0x7E).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
      return isPlain ? String(Unicode.Scalar(byte)) : "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }.joined()
  }

  /// Writes one line to standard output for each line of standard input; see `Verdict`.
  private static func answerVerdicts() -> CInt {
    while let line = readLine() { print(Verdict.answer(to: line)) }
    return 0
  }
}
