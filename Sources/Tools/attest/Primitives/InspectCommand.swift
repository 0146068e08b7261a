internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import Inspection

struct InspectCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inspect",
    abstract: "Show what bytes contain, as a tree with offsets, names and meanings. Nothing is verified.",
    discussion: """
      Reads an attestation object, an assertion, a receipt, a certificate chain of an Android device, an identity JWT, \
      an access token or a DPoP proof, in binary, base64 or PEM; the body of a registration; header lines. \
      `sallyport verify` says which rules hold.

      Each line has the offset, the bytes of the header and those of the content, as `openssl asn1parse` has them. \
      Exits with 65 if an encoding is broken, after what could be read. Private keys are not shown.

      Example:
        attest attestation --nonce "$NONCE" --cbor object.cbor
        attest inspect object.cbor
        attest headers wss://localhost:6200/ --authority DIR | attest inspect -
      """)

  @Argument(help: "The file; - is standard input.")
  var file: String

  @Flag(name: .long, help: "Print the tree as JSON.")
  var json = false

  func run() throws {
    let name = file == "-" ? "standard input" : file
    let content = try InputFile.beginning(file, atMost: Inspection.maximumSize + 1)
    let inspection: Inspection
    do throws(InspectionError) {
      inspection = try Inspection(content)
    } catch {
      throw Failure(.badData, "\(name): \(error)", hint: Self.hint(for: error))
    }
    let faults = inspection.faults
    if json { JSONOutput.print(InspectionOutput(inspection)) } else { StandardOutput.write(inspection.lines) }
    guard let first = faults.first else { return }
    let more = faults.count > 1 ? ", and \(faults.count - 1) more" : ""
    let part = first.part == "error" ? "" : " (\(first.part))"
    throw Failure(
      .badData, "\(name): byte \(first.offset)\(part): \(first.reason)\(more)",
      hint: "the tree shows what could be read; `sallyport verify` names the rule that refuses it")
  }

  private static func hint(for error: InspectionError) -> String {
    switch error {
    case .tooLong: "what devices and gates send is smaller; name the right file"
    case .empty: "name a file, or send one to standard input"
    case .privateKey: "`openssl pkey -pubout` writes its public part"
    case .unrecognized: "`attest inspect --help` lists what it reads; hex becomes binary with `xxd -r -p`"
    }
  }
}

extension Inspection {
  /// The tree for people: a line a part.
  fileprivate var lines: String {
    let armor = isArmored ? " in base64" : ""
    var lines = ["\(kind.text)\(armor), \(size) bytes"]
    for (depth, node) in parts.flatMap(\.flattened) {
      let places = [(node.offset, 7), (node.header, 3), (node.length, 6)].map { number, width in
        let digits = String(number)
        return String(repeating: " ", count: max(0, width - digits.count)) + digits
      }
      var line = places.joined(separator: " ") + "  " + String(repeating: "  ", count: depth) + node.name
      if !node.type.isEmpty, node.type != node.name { line += " \(node.type)" }
      if let value = node.value { line += ": \(value)" }
      if let meaning = node.meaning { line += "  # \(meaning)" }
      if let fault = node.fault, fault != node.value { line += "  ! \(fault)" }
      lines.append(TerminalText.printable(line))
    }
    return lines.joined(separator: "\n") + "\n"
  }
}

/// The output of `--json`.
private struct InspectionOutput: Encodable {
  struct Part: Encodable {
    let offset: Int
    let header: Int
    let length: Int
    let name: String
    let type: String?
    let value: String?
    let meaning: String?
    let fault: String?
    let parts: [Part]?

    init(_ node: InspectedNode) {
      (offset, header, length, name) = (node.offset, node.header, node.length, node.name)
      type = node.type.isEmpty ? nil : node.type
      (value, meaning, fault) = (node.value, node.meaning, node.fault)
      parts = node.children.isEmpty ? nil : node.children.map(Part.init)
    }
  }

  struct Fault: Encodable {
    let offset: Int
    let part: String
    let reason: String
  }

  let kind: String
  let size: Int
  let base64: Bool
  let parts: [Part]
  let faults: [Fault]

  init(_ inspection: Inspection) {
    kind = inspection.kind.rawValue
    (size, base64) = (inspection.size, inspection.isArmored)
    parts = inspection.parts.map(Part.init)
    faults = inspection.faults.map { Fault(offset: $0.offset, part: $0.part, reason: $0.reason) }
  }
}
