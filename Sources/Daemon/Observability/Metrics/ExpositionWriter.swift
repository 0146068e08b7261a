/// Writes Prometheus' text format.
struct ExpositionWriter {
  private(set) var bytes: [UInt8] = []

  mutating func begin(_ family: FamilyDescription) {
    let help = family.help.flatMap { $0 == "\\" ? "\\\\" : $0 == "\n" ? "\\n" : String($0) }
    append("# HELP \(family.name) \(String(help))\n# TYPE \(family.name) \(family.kind.rawValue)\n")
  }

  mutating func sample(_ name: String, _ labels: some Sequence<(String, String)>, _ value: Double) {
    let labels = labels.map { "\($0)=\"\(Self.escaped($1))\"" }
    append(name + (labels.isEmpty ? "" : "{\(labels.joined(separator: ","))}") + " \(Self.text(value))\n")
  }

  private mutating func append(_ text: String) { bytes += text.utf8 }

  private static func escaped(_ label: String) -> String {
    var text = ""
    for character in label.unicodeScalars {
      switch character {
      case "\\": text += "\\\\"
      case "\"": text += "\\\""
      case "\n": text += "\\n"
      default: text.unicodeScalars.append(character)
      }
    }
    return text
  }

  /// A whole number without a point: so small ones are easier to read, and exact up to 2^53.
  static func text(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
    return Int64(exactly: value).map(String.init) ?? "\(value)"
  }
}
