import AuthenticatorVault
import Foundation
import TestSupport
import Testing

@testable import VaultFormats

private func read(_ text: String) throws -> ImportedFile { try VaultReader.read(Array(text.utf8), at: 5) { "" } }

/// The objects of the list `name` of an export that was written from the vault of `file`.
private func exported(_ file: ImportedFile, as format: VaultFormat, _ name: String) throws -> [[String: JSONValue]] {
  // As the vault has them: sorted by name.
  var vault = Vault()
  for entry in file.entries { vault.add(entry, at: 5) }
  let again = try Vault(json: vault.json())
  let written = try VaultWriter.write(again.entries, as: format, password: nil, at: 9)
  let kept = try VaultReader.read(written.bytes, at: 5) { "" }
  #expect(VaultWriter.losses(of: again.entries, in: kept).isEmpty)
  guard case .object(let root) = try JSONDecoder().decode(JSONValue.self, from: Data(written.bytes)),
    case .array(let items)? = name == "entries" ? root["db"]?.object?[name] : root[name]
  else { return [] }
  return items.compactMap(\.object)
}

extension JSONValue {
  fileprivate var object: [String: JSONValue]? { if case .object(let members) = self { members } else { nil } }
  fileprivate var text: String? { if case .string(let text) = self { text } else { nil } }
}

private func aegis(_ entries: String) -> String {
  #"{"version":1,"header":{"slots":null,"params":null},"db":{"version":3,"groups":[],"entries":[\#(entries)]}}"#
}

@Suite("How other apps show an entry", .timeLimit(.minutes(3)))
struct LookTests {
  @Test func `a file of Aegis comes back with its order, favorites and icons`() throws {
    let icon = Data(repeating: 7, count: 3000).base64EncodedString()
    let file = try read(
      aegis(
        """
        {"type":"totp","name":"z","issuer":"Z","favorite":true,"icon":"\(icon)","icon_mime":"image/png",
        "icon_hash":"ab","info":{"secret":"GEZDGNBV"}},
        {"type":"totp","name":"a","issuer":"A","favorite":false,"icon":null,"info":{"secret":"GEZDGNBVGY"}},
        {"type":"motp","name":"m","issuer":"M","favorite":true,"info":{"secret":"GEZDGNBVGY3TQ",
        "algo":"MD5","digits":6,"pin":"1"}}
        """))
    #expect(file.entries.count == 3 && file.faults.isEmpty && file.notes.isEmpty)
    let items = try exported(file, as: .aegis, "entries")
    #expect(items.map { $0["issuer"]?.text } == ["Z", "A", "M"])
    #expect(items.map { $0["favorite"] } == [.bool(true), .bool(false), .bool(true)])
    #expect(items.first?["icon"] == .string(icon) && items[0]["icon_mime"] == .string("image/png"))
    #expect(items[0]["icon_hash"] == .string("ab") && items[1]["icon"] == nil)
    #expect(items[2]["info"]?.object?["pin"] == .string("1"))
  }

  @Test func `a file of 2FAS comes back with its order, icons, badges and services`() throws {
    let icon = #"{"selected":"Brand","brand":{"id":"5"},"iconCollection":{"id":"x"}}"#
    let file = try read(
      """
      {"services":[{"name":"B","secret":"GEZDGNBV","otp":{"account":"b"},"order":{"position":2},"icon":\(icon),
      "badge":{"color":"Red"},"serviceTypeID":"s-1"},
      {"name":"A","secret":"GEZDGNBVGY","otp":{"account":"a"},"order":{"position":7}},
      {"name":"C","secret":"GEZDGNBVGY3TQ","otp":{"account":"c"},"order":{"position":0}},
      {"name":"D","secret":"GEZDGNBVGY3TQOJQ","otp":{"account":"d"}}],"groups":[],"schemaVersion":4}
      """)
    let items = try exported(file, as: .twoFAS, "services")
    #expect(items.map { $0["name"]?.text } == ["C", "B", "A", "D"])
    #expect(items[1]["icon"] == (try JSONDecoder().decode(JSONValue.self, from: Data(icon.utf8))))
    #expect(items[1]["badge"] == .object(["color": .string("Red")]) && items[1]["serviceTypeID"] == .string("s-1"))
    #expect(items[2]["badge"] == nil && items[2]["icon"]?.object?["selected"] == .string("Label"))
    #expect(items.map { $0["order"] } == (0..<4).map { .object(["position": .integer($0)]) })
  }

  @Test func `another app gets nothing of it, and no loss is named`() throws {
    let file = try read(aegis(#"{"type":"totp","name":"z","issuer":"Z","favorite":true,"info":{"secret":"GEZDGNBV"}}"#))
    for format in [VaultFormat.twoFAS, .otpauth, .google] {
      let written = try VaultWriter.write(file.entries, as: format, password: nil, at: 9)
      let again = try VaultReader.read(written.bytes, at: 5) { "" }
      #expect(VaultWriter.losses(of: file.entries, in: again).isEmpty)
      #expect(!String(decoding: written.bytes, as: UTF8.self).contains("avorite"))
    }
  }

  @Test(
    "Members that are no icon refuse nothing, and are left out",
    arguments: [
      #""favorite":"yes","icon":{},"icon_mime":5"#, #""favorite":1e999,"icon":[[[]]],"icon_hash":null"#,
      #""icon_mime":"image/png","icon_hash":"ab""#,
    ])
  func wrongKinds(_ members: String) throws {
    let file = try read(aegis(#"{"type":"totp","name":"z","info":{"secret":"GEZDGNBV"},\#(members)}"#))
    #expect(file.entries.count == 1 && file.faults.isEmpty)
    let items = try exported(file, as: .aegis, "entries")
    #expect(items[0]["favorite"] == .bool(false) && items[0]["icon"] == nil && items[0]["icon_mime"] == nil)
    let service = #"{"name":"A","secret":"GEZDGNBV","order":5,"icon":"x","badge":[1],"serviceTypeID":{}}"#
    #expect(try exported(read("{\"services\":[\(service)]}"), as: .twoFAS, "services").count == 1)
  }

  @Test func `an icon that is too long is left out and named, and so are icons beyond those of a file`() throws {
    func entry(_ number: Int, _ length: Int) -> String {
      let icon = String(repeating: "A", count: length)
      let secret = "GEZDGNBV" + String(repeating: "A", count: number)
      return #"{"type":"totp","name":"\#(number)","favorite":true,"icon":"\#(icon)","info":{"secret":"\#(secret)"}}"#
    }
    let one = try read(aegis(entry(8, 40_000)))
    #expect(one.entries.count == 1 && one.notes.map(\.place) == ["8"])
    #expect(one.notes.first?.reason.contains("32768 are the most") == true)
    #expect(try exported(one, as: .aegis, "entries").first?["favorite"] == .bool(true))
    let many = try read(aegis((0..<80).map { entry($0 * 8, 30_000) }.joined(separator: ",")))
    #expect(many.entries.count == 80 && many.notes.count == 11, "\(many.notes.count) \(many.faults)")
  }

  @Test func `an edit of the entry keeps its look`() throws {
    let file = try read(aegis(#"{"type":"totp","name":"z","issuer":"Z","favorite":true,"info":{"secret":"GEZDGNBV"}}"#))
    var vault = Vault()
    vault.add(file.entries[0], at: 5)
    try vault.edit(file.entries[0].id, at: 6) { $0.issuer = "New" }
    let bytes = try VaultWriter.write(vault.entries, as: .aegis, password: "p", at: 9).bytes
    let again = try VaultReader.read(bytes, at: 5) { "p" }
    #expect(again.entries.map(\.issuer) == ["New"] && again.entries[0].otherFields == file.entries[0].otherFields)
  }
}
