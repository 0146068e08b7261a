@testable import ConfigurationEngine
@testable import Settings

extension FuzzTarget {
  static let dotEnv = FuzzTarget(
    name: "dotenv", longest: 1024, words: ["export ", "=", "\"", "'", " #", "\\n", "\n"],
    seeds: { DotEnvInvariants.seeds.map { Array($0.utf8) } }, accepts: DotEnvInvariants.check)
}

/// A `.env` file has the same meaning after its values are quoted.
enum DotEnvInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    let file = DotEnv(text: String(decoding: input, as: UTF8.self))
    let values = file.variables.mapValues(\.value)
    for name in values.keys {
      let isName = name.utf8.allSatisfy { byte in
        let character = Character(Unicode.Scalar(byte))
        return byte < 0x80 && (character == "_" || character.isLetter || character.isNumber)
      }
      try require(!name.isEmpty && isName && name.first?.isNumber == false, "a variable has a valid name", name)
    }
    for fault in file.faults {
      try require(!fault.description.contains(where: \.isNewline), "a fault is reported on one line", "\(fault)")
    }
    guard values.values.allSatisfy(isPlain) else { return !values.isEmpty }
    let again = DotEnv(text: values.map { "\($0)=\(quoted($1))\n" }.joined())
    try require(again.variables.mapValues(\.value) == values, "the quoted values have the same meaning", "\(values)")
    try require(again.faults.isEmpty, "the quoted values have no faults", "\(again.faults)")
    return !values.isEmpty
  }

  /// Reports whether `value` contains no line break and no character that could combine with a quotation mark.
  private static func isPlain(_ value: String) -> Bool {
    value.utf8.allSatisfy { $0 < 0x80 && ![0x0B, 0x0C, 0x0D].contains($0) }
  }

  private static func quoted(_ value: String) -> String {
    let escapes: [Character: String] = ["\n": "\\n", "\t": "\\t", "\"": "\\\"", "\\": "\\\\", "$": "\\$"]
    return "\"" + value.map { escapes[$0] ?? String($0) }.joined() + "\""
  }

  static let seeds = [
    "A=b", "export A_1 = 'x y' # comment\nB=\"a\\n\\\"b\\\"\"", "# nothing\n\nREQUIRE_APP_AUTH=true # yes\nC=a#b",
    "1A=2", "A=\"b", "A=1\nA=2",
  ]
}
